// The positions of a grid's columns.

import { cellText } from "./dom.js";

const NARROWEST = 64;
const WIDEST = 360;
const SAMPLED_CELLS = 20_000;

/** The start of each column in pixels, and the end of the last one; each is as wide as the contents of some rows. */
export function columnStarts(columns, rows) {
  const sampled = rows.slice(0, Math.max(1, Math.min(100, Math.floor(SAMPLED_CELLS / Math.max(1, columns.length)))));
  const starts = new Float64Array(columns.length + 1);
  columns.forEach(({ name, type }, column) => {
    let longest = Math.max(String(name).length + 2, String(type ?? "").length);
    for (const row of sampled) longest = Math.max(longest, Math.min(60, cellText(row[column]).length));
    starts[column + 1] = starts[column] + Math.max(NARROWEST, Math.min(WIDEST, longest * 7.5 + 20));
  });
  return starts;
}

/** The last column that starts at or before `x`. */
export function columnAt(starts, x) {
  let [low, high] = [0, Math.max(0, starts.length - 2)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= x) low = middle;
    else high = middle - 1;
  }
  return low;
}
