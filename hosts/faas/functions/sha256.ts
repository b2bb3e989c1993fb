// SHA-256 (FIPS 180-4) of the argument: 32 bytes.

import { argumentLength, readArgument, writeResult } from "./selvedge";

const ROUNDS: StaticArray<u32> = [
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

const state = memory.data<u32>([
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
]);
const schedule = memory.data(256);

function block(at: usize): void {
  for (let i: usize = 0; i < 16; i++) {
    store<u32>(schedule + i * 4, bswap<u32>(load<u32>(at + i * 4)));
  }
  for (let i: usize = 16; i < 64; i++) {
    const a = load<u32>(schedule + (i - 15) * 4);
    const b = load<u32>(schedule + (i - 2) * 4);
    const s = rotr<u32>(a, 7) ^ rotr<u32>(a, 18) ^ (a >> 3);
    const t = rotr<u32>(b, 17) ^ rotr<u32>(b, 19) ^ (b >> 10);
    const sum = load<u32>(schedule + (i - 16) * 4) + s + load<u32>(schedule + (i - 7) * 4) + t;
    store<u32>(schedule + i * 4, sum);
  }
  let a = load<u32>(state), b = load<u32>(state, 4), c = load<u32>(state, 8), d = load<u32>(state, 12);
  let e = load<u32>(state, 16), f = load<u32>(state, 20), g = load<u32>(state, 24), h = load<u32>(state, 28);
  for (let i: usize = 0; i < 64; i++) {
    const s = rotr<u32>(e, 6) ^ rotr<u32>(e, 11) ^ rotr<u32>(e, 25);
    const choice = (e & f) ^ (~e & g);
    const x = h + s + choice + unchecked(ROUNDS[i32(i)]) + load<u32>(schedule + i * 4);
    const t = rotr<u32>(a, 2) ^ rotr<u32>(a, 13) ^ rotr<u32>(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    h = g; g = f; f = e; e = d + x;
    d = c; c = b; b = a; a = x + t + majority;
  }
  store<u32>(state, load<u32>(state) + a);
  store<u32>(state, load<u32>(state, 4) + b, 4);
  store<u32>(state, load<u32>(state, 8) + c, 8);
  store<u32>(state, load<u32>(state, 12) + d, 12);
  store<u32>(state, load<u32>(state, 16) + e, 16);
  store<u32>(state, load<u32>(state, 20) + f, 20);
  store<u32>(state, load<u32>(state, 24) + g, 24);
  store<u32>(state, load<u32>(state, 28) + h, 28);
}

/** The SHA-256 of the argument. */
export function sha256(): void {
  const length = max(argumentLength(0), 0);
  // A byte and the length of 64 bits follow, and zeros up to a whole block.
  const padded = (length + 9 + 63) & ~63;
  const at = heap.alloc(padded);
  readArgument(0, at);
  memory.fill(at + length, 0, padded - length);
  store<u8>(at + length, 0x80);
  store<u64>(at + padded - 8, bswap<u64>(u64(length) * 8));
  for (let i = 0; i < padded; i += 64) block(at + i);
  for (let i: usize = 0; i < 32; i += 4) {
    store<u32>(state + i, bswap<u32>(load<u32>(state + i)));
  }
  writeResult(state, 32);
}
