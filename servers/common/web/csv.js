// Comma-separated values (RFC 4180), safe to open in a spreadsheet.

import { isNumber } from "./cells.js";
import { cellText } from "./dom.js";

// Texts that a spreadsheet would interpret as a formula; numbers may still begin with a minus.
const FORMULA = /^[=+\-@\t\r]/;

/** `columns` (names, or {name}) and `rows` as CSV; an apostrophe precedes each text that a spreadsheet would run. */
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
