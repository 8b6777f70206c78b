// Comma-separated values (RFC 4180), safe to open in a spreadsheet.

import { isNumber } from "./cells.js";
import { cellText } from "./dom.js";

// What a spreadsheet takes for a formula; a number may start with a minus all the same.
const FORMULA = /^[=+\-@\t\r]/;

/** `columns` (names, or {name}) and `rows` as CSV; a text that a spreadsheet would run begins with an apostrophe. */
export function toCsv(columns, rows) {
  const lines = [columns.map((column) => csvField(column?.name ?? column)).join(",")];
  for (const row of rows) lines.push(row.map(csvField).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

function csvField(value) {
  const text = cellText(value);
  const safe = !isNumber(value) && FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
