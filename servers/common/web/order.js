// The rows that a table shows, and their order: filtered and sorted in slices, whatever their number.

import { cellText } from "./dom.js";
import { Slice } from "./slices.js";

const RUN = 1024;
const KEY_LENGTH = 200;
const OF_NUMBER = 0;
const OF_TEXT = 1;
const OF_NULL = 2;
const collator = new Intl.Collator(undefined, { numeric: true });

/** The numbers of the rows that contain `filter`, sorted by `sort` ({column, down} or null); null as soon as
 * `isWanted` returns false. */
export async function orderRows(rows, { filter, sort }, isWanted) {
  const slice = new Slice();
  const order = await filterRows(rows, filter.toLowerCase(), slice, isWanted);
  if (order === null || sort === null) return order;
  const keys = await sortKeys(rows, order, sort.column, slice, isWanted);
  return keys && sortByKeys(order, keys, sort.down, slice, isWanted);
}

async function filterRows(rows, wanted, slice, isWanted) {
  const found = new Uint32Array(rows.length);
  let length = 0;
  for (let row = 0; row < rows.length; row += 1) {
    if (wanted === "" || rows[row].some((value) => cellText(value).toLowerCase().includes(wanted))) {
      found[length] = row;
      length += 1;
    }
    if (wanted !== "" && slice.over()) {
      await slice.next();
      if (!isWanted()) return null;
    }
  }
  return found.subarray(0, length);
}

/** The sort key of each row: its kind, and its number or text. */
async function sortKeys(rows, order, column, slice, isWanted) {
  const kinds = new Uint8Array(rows.length);
  const numbers = new Float64Array(rows.length);
  const texts = new Array(rows.length);
  for (const row of order) {
    const value = rows[row][column];
    if (value === null || value === undefined) {
      kinds[row] = OF_NULL;
    } else if (typeof value === "number") {
      numbers[row] = value;
    } else if (typeof value === "bigint") {
      numbers[row] = Number(value);
      texts[row] = value;
    } else {
      kinds[row] = OF_TEXT;
      texts[row] = cellText(value).slice(0, KEY_LENGTH);
    }
    if (slice.over()) {
      await slice.next();
      if (!isWanted()) return null;
    }
  }
  return { kinds, numbers, texts };
}

// Numbers, then texts, with null last in either direction.
function comparison({ kinds, numbers, texts }, down) {
  const sign = down ? -1 : 1;
  return (one, other) => {
    const kind = kinds[one];
    const ahead = kind - kinds[other];
    if (ahead !== 0) return kind === OF_NULL || kinds[other] === OF_NULL ? ahead : sign * ahead;
    if (kind === OF_NUMBER) {
      // Large integers may differ by less than a double can represent.
      const [exact, otherExact] = [texts[one] ?? numbers[one], texts[other] ?? numbers[other]];
      return exact < otherExact ? -sign : exact > otherExact ? sign : 0;
    }
    return kind === OF_TEXT ? sign * collator.compare(texts[one], texts[other]) : 0;
  };
}

/** Merge sort that begins with short runs; it is stable, and can be interrupted anywhere. */
async function sortByKeys(order, keys, down, slice, isWanted) {
  const compare = comparison(keys, down);
  let [from, to] = [order, new Uint32Array(order.length)];
  for (let start = 0; start < from.length; start += RUN) {
    from.subarray(start, start + RUN).sort(compare);
    if (slice.over()) await slice.next();
    if (!isWanted()) return null;
  }
  for (let width = RUN; width < from.length; width *= 2) {
    for (let start = 0; start < from.length; start += 2 * width) {
      const merging = { from, to, start, middle: Math.min(start + width, from.length), width };
      if (!(await mergeRuns(merging, compare, slice, isWanted))) return null;
    }
    [from, to] = [to, from];
  }
  return from;
}

async function mergeRuns({ from, to, start, middle, width }, compare, slice, isWanted) {
  const end = Math.min(middle + width, from.length);
  let [left, right] = [start, middle];
  for (let at = start; at < end; at += 1) {
    const takesLeft = left < middle && (right >= end || compare(from[left], from[right]) <= 0);
    to[at] = takesLeft ? from[left++] : from[right++];
    if (at % 256 === 0 && slice.over()) {
      await slice.next();
      if (!isWanted()) return false;
    }
  }
  return true;
}
