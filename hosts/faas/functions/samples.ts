// Filters over samples of a sensor: signed numbers of 16 bits in little-endian, the argument. An odd
// byte at the end does not count. Without samples the call fails.

import { argumentLength, readArgument, writeResult } from "./selvedge";

// A sample is an outlier when its distance from the median is more than FAR times the median of all
// these distances.
const FAR: i32 = 5;

let count: i32 = 0;
let samples: usize = 0;

function read(): void {
  count = max(argumentLength(0), 0) / 2;
  if (count == 0) unreachable();
  // Room for an odd byte at the end, too.
  samples = heap.alloc((count + 1) * 2);
  readArgument(0, samples);
}

function sampleAt(nth: i32): i32 {
  return load<i16>(samples + nth * 2);
}

function sort(numbers: usize): void {
  for (let gap = count / 2; gap > 0; gap /= 2) {
    for (let i = gap; i < count; i++) {
      const number = load<i32>(numbers + i * 4);
      let at = i;
      while (at >= gap && load<i32>(numbers + (at - gap) * 4) > number) {
        store<i32>(numbers + at * 4, load<i32>(numbers + (at - gap) * 4));
        at -= gap;
      }
      store<i32>(numbers + at * 4, number);
    }
  }
}

// The median of the sorted numbers; of two in the middle the upper one.
function middle(numbers: usize): i32 {
  sort(numbers);
  return load<i32>(numbers + (count / 2) * 4);
}

function medianOfSamples(): i32 {
  const numbers = heap.alloc(count * 4);
  for (let i = 0; i < count; i++) store<i32>(numbers + i * 4, sampleAt(i));
  return middle(numbers);
}

function limitFor(median: i32): i32 {
  const distances = heap.alloc(count * 4);
  for (let i = 0; i < count; i++) store<i32>(distances + i * 4, abs(sampleAt(i) - median));
  return FAR * middle(distances);
}

/** The mean. */
export function mean(): f64 {
  read();
  let sum: i64 = 0;
  for (let i = 0; i < count; i++) sum += sampleAt(i);
  return f64(sum) / f64(count);
}

/** The median. */
export function median(): i32 {
  read();
  return medianOfSamples();
}

/** The number of outliers. */
export function outliers(): i32 {
  read();
  const median = medianOfSamples();
  const limit = limitFor(median);
  let far = 0;
  for (let i = 0; i < count; i++) far += i32(abs(sampleAt(i) - median) > limit);
  return far;
}

/** The samples, with the median in place of outliers. */
export function cleaned(): void {
  read();
  const median = medianOfSamples();
  const limit = limitFor(median);
  for (let i = 0; i < count; i++) {
    if (abs(sampleAt(i) - median) > limit) store<i16>(samples + i * 2, i16(median));
  }
  writeResult(samples, count * 2);
}
