;; Glue between a call and @jitsi/rnnoise-wasm, a recurrent neural net that detects voices in noise.
;; `fetch.sh` merges both into one module; its compiler chose the names.
(module
  (import "rnnoise" "c" (memory 0))
  (import "rnnoise" "d" (func $constructors))
  (import "rnnoise" "f" (func $create (param i32) (result i32)))
  (import "rnnoise" "g" (func $malloc (param i32) (result i32)))
  (import "rnnoise" "j" (func $process (param i32 i32 i32) (result f32)))
  (export "_initialize" (func $constructors))
  (export "malloc" (func $malloc))

  ;; emscripten_memcpy_big.
  (func (export "b") (param $to i32) (param $from i32) (param $bytes i32)
    (memory.copy (local.get $to) (local.get $from) (local.get $bytes)))

  ;; How sure the net is, from 0 to 1, that the last of some frames is a voice. Samples are i16 in
  ;; little-endian, 48,000 a second, and begin again at their end; a frame has 480 of them.
  (func (export "voice") (param $in i32) (param $bytes i32) (param $frames i32) (result f32)
    (local $state i32) (local $frame i32) (local $at i32) (local $nth i32) (local $sure f32)
    (local.set $state (call $create (i32.const 0)))
    (local.set $frame (call $malloc (i32.const 1920)))
    (block $over
      (loop $more
        (br_if $over (i32.eqz (local.get $frames)))
        (local.set $frames (i32.sub (local.get $frames) (i32.const 1)))
        (local.set $nth (i32.const 0))
        (loop $fill
          (f32.store
            (i32.add (local.get $frame) (i32.shl (local.get $nth) (i32.const 2)))
            (f32.convert_i32_s (i32.load16_s (i32.add (local.get $in) (local.get $at)))))
          (local.set $at (i32.rem_u (i32.add (local.get $at) (i32.const 2)) (local.get $bytes)))
          (local.set $nth (i32.add (local.get $nth) (i32.const 1)))
          (br_if $fill (i32.lt_u (local.get $nth) (i32.const 480))))
        (local.set $sure
          (call $process (local.get $state) (local.get $frame) (local.get $frame)))
        (br $more)))
    (local.get $sure)))
