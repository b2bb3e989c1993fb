// Kernels over a small grey image: a byte each pixel, row by row.

import { writeResult } from "./selvedge";

/** Room for an argument. */
export function alloc(length: i32): usize {
  return heap.alloc(length);
}

function pixel(at: usize, width: i32, x: i32, y: i32): i32 {
  return load<u8>(at + y * width + x);
}

/** Edges, by Sobel: the sum of both gradients' sizes, up to 255. Pixels at the border are 0. */
export function sobel(at: usize, length: i32, width: i32): void {
  if (width <= 0 || length % width != 0) unreachable();
  const height = length / width;
  const edges = heap.alloc(length);
  memory.fill(edges, 0, length);
  for (let y = 1; y < height - 1; y++) {
    for (let x = 1; x < width - 1; x++) {
      const nw = pixel(at, width, x - 1, y - 1), n = pixel(at, width, x, y - 1), ne = pixel(at, width, x + 1, y - 1);
      const w = pixel(at, width, x - 1, y), e = pixel(at, width, x + 1, y);
      const sw = pixel(at, width, x - 1, y + 1), s = pixel(at, width, x, y + 1), se = pixel(at, width, x + 1, y + 1);
      const dx = ne + 2 * e + se - nw - 2 * w - sw;
      const dy = sw + 2 * s + se - nw - 2 * n - ne;
      store<u8>(edges + y * width + x, min(abs(dx) + abs(dy), 255));
    }
  }
  writeResult(edges, length);
}
