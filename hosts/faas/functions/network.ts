// A small neural net over a window of 16 samples of a sensor, signed numbers of 8 bits: does the
// value stay, drift or oscillate? Two layers, 12 hidden units, weights of 8 bits, whole numbers only.
//
// It was trained on windows made at random: a level from -40 to 40, noise up to 3, and a slope from 2
// to 4 a sample, or a sine of an amplitude from 15 to 50 and a period from 3 to 8 samples.

import { writeResult } from "./selvedge";

const INPUTS: i32 = 16;
const HIDDEN: i32 = 12;
const CLASSES: i32 = 3;
// The number of bits by which a hidden unit's sum is shifted.
const SHIFT: i32 = 8;

const HIDDEN_WEIGHTS = memory.data<i8>([
  14, 26, -8, -21, -16, -1, 6, 3, 24, 16, 17, -22, -75, 18, 49, -1,
  -21, -51, -18, 14, 33, 53, 18, -72, -12, 26, -31, 46, 75, 5, -73, -37,
  -3, 2, 25, 45, -25, -63, -17, 10, 2, 60, 0, -83, 14, 58, -53, -31,
  76, 51, 54, 46, 28, 51, 37, 21, -1, -28, -19, -53, -50, -68, -60, -103,
  10, 20, 11, -63, -59, -1, 89, 83, -73, -127, 14, 21, -35, 13, 29, -17,
  -23, 11, 77, 42, -1, -24, -67, 35, 88, -7, -79, 16, 17, -87, -6, 38,
  -32, 35, -8, -54, -18, 24, 8, 23, -9, -20, 16, -3, -32, 49, 90, -14,
  -93, -84, -58, -30, -12, -37, 16, -35, -24, 25, 52, 57, 53, 46, 62, 77,
  -14, 8, 29, 5, 13, -1, 22, 17, 9, -2, -5, 11, -8, 6, 24, -32,
  -23, 17, 32, 9, -6, 27, 6, -21, 41, 1, -20, 11, 9, -15, -65, -31,
  18, -43, -33, 29, 36, 44, -31, -72, -35, 70, 48, -67, 31, -3, -1, -27,
  25, 24, -30, 11, 44, -18, -41, 23, 15, -4, 89, 3, -48, -55, 22, 45,
]);
const HIDDEN_BIASES = memory.data<i32>([-50, -40, -54, -138, -61, -130, -64, -131, 4875, -47, -49, -63]);
const WEIGHTS = memory.data<i8>([
  -37, -62, -78, -89, -75, -94, -72, -110, 88, -32, -46, -60,
  -15, -36, 3, 121, -39, 21, 37, 108, -68, 35, -30, -37,
  62, 97, 86, -46, 127, 105, 57, -27, -42, 46, 99, 75,
]);
const BIASES = memory.data<i32>([815, -390, -425]);

const inputs = memory.data(64);
const hidden = memory.data(48);
const outputs = memory.data(12);

/** Room for an argument. */
export function alloc(length: i32): usize {
  return heap.alloc(length);
}

function run(at: usize, length: i32): void {
  if (length != INPUTS) unreachable();
  let sum = 0;
  for (let i = 0; i < INPUTS; i++) sum += load<i8>(at + i);
  const mean = sum / INPUTS;
  for (let i = 0; i < INPUTS; i++) {
    store<i32>(inputs + i * 4, min(max(i32(load<i8>(at + i)) - mean, -127), 127));
  }
  for (let unit = 0; unit < HIDDEN; unit++) {
    let sum = load<i32>(HIDDEN_BIASES + unit * 4);
    for (let i = 0; i < INPUTS; i++) {
      sum += i32(load<i8>(HIDDEN_WEIGHTS + unit * INPUTS + i)) * load<i32>(inputs + i * 4);
    }
    store<i32>(hidden + unit * 4, min(max(sum, 0) >> SHIFT, 127));
  }
  for (let out = 0; out < CLASSES; out++) {
    let sum = load<i32>(BIASES + out * 4);
    for (let unit = 0; unit < HIDDEN; unit++) {
      sum += i32(load<i8>(WEIGHTS + out * HIDDEN + unit)) * load<i32>(hidden + unit * 4);
    }
    store<i32>(outputs + out * 4, sum);
  }
}

/** 0: it stays; 1: it drifts; 2: it oscillates. */
export function classify(at: usize, length: i32): i32 {
  run(at, length);
  let best = 0;
  for (let out = 1; out < CLASSES; out++) {
    if (load<i32>(outputs + out * 4) > load<i32>(outputs + best * 4)) best = out;
  }
  return best;
}

/** The scores of the three classes: signed numbers of 32 bits in little-endian. */
export function scores(at: usize, length: i32): void {
  run(at, length);
  writeResult(outputs, CLASSES * 4);
}
