// The imports of functions. Each file here is compiled with it.

// @ts-ignore: decorator
@external("selvedge", "argument_len")
export declare function argumentLength(nth: i32): i32;

// @ts-ignore: decorator
@external("selvedge", "argument_read")
export declare function readArgument(nth: i32, at: usize): void;

// @ts-ignore: decorator
@external("selvedge", "result_write")
export declare function writeResult(at: usize, length: i32): void;
