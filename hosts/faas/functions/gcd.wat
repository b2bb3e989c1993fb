;; The greatest common divisor of two numbers, without imports.
(module
  (func (export "gcd") (param $a i64) (param $b i64) (result i64)
    (local $rest i64)
    (loop $next
      (if (i64.ne (local.get $b) (i64.const 0))
        (then
          (local.set $rest (i64.rem_u (local.get $a) (local.get $b)))
          (local.set $a (local.get $b))
          (local.set $b (local.get $rest))
          (br $next))))
    (local.get $a)))
