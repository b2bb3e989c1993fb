;; Glue between a call and kissfft-wasm: its exports take pointers from earlier calls, and a call here is
;; one export. `fetch.sh` merges both into one module; its compiler chose the names. The imports of `a` that
;; are called come from here: the others are files and more memory.
(module
  (import "kissfft" "f" (memory 0))
  (import "kissfft" "g" (func $constructors))
  (import "kissfft" "l" (func $scale (param i32 i32 f32)))
  (import "kissfft" "n" (func $alloc (param i32 i32 i32 i32) (result i32)))
  (import "kissfft" "o" (func $malloc (param i32) (result i32)))
  (import "kissfft" "q" (func $transform (param i32 i32 i32)))
  (import "selvedge" "result_write" (func $result (param i32 i32)))
  (export "_initialize" (func $constructors))
  (export "malloc" (func $malloc))

  ;; emscripten_memcpy_big.
  (func (export "c") (param $to i32) (param $from i32) (param $bytes i32) (result i32)
    (memory.copy (local.get $to) (local.get $from) (local.get $bytes))
    (local.get $to))

  ;; Complex numbers, each two f32: their transform.
  (func (export "fft") (param $in i32) (param $bytes i32)
    (call $result
      (call $run (local.get $in) (local.get $bytes) (i32.const 0))
      (local.get $bytes)))

  ;; The way back.
  (func (export "ifft") (param $in i32) (param $bytes i32)
    (local $out i32)
    (local.set $out (call $run (local.get $in) (local.get $bytes) (i32.const 1)))
    (call $scale
      (local.get $out)
      (i32.div_u (local.get $bytes) (i32.const 4))
      (f32.div (f32.const 8) (f32.convert_i32_u (local.get $bytes))))
    (call $result (local.get $out) (local.get $bytes)))

  (func $run (param $in i32) (param $bytes i32) (param $inverse i32) (result i32)
    (local $out i32)
    (local.set $out (call $malloc (local.get $bytes)))
    (call $transform
      (call $alloc
        (i32.div_u (local.get $bytes) (i32.const 8))
        (local.get $inverse)
        (i32.const 0)
        (i32.const 0))
      (local.get $in)
      (local.get $out))
    (local.get $out)))
