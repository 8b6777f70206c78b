// Parser for CSV tables (RFC 4180).

const MOST_CSV_ROWS = 10_000;
const MOST_CSV_COLUMNS = 10_000;

/** Returns the columns, named by the first line, and the rows of a CSV text. Columns of numbers are numeric. */
export function parseCsv(text) {
  const { lines, isCut } = csvLines(text.replace(/^\ufeff/, ""));
  const [names = [], ...rows] = lines;
  const width = Math.min(
    MOST_CSV_COLUMNS,
    rows.reduce((most, row) => Math.max(most, row.length), names.length),
  );
  const columns = Array.from({ length: width }, (_, at) => ({ name: names[at] ?? `column ${at + 1}` }));
  const isNumeric = columns.map((_, at) => rows.every((row) => isCsvNumber(row[at])) && rows.some((row) => row[at]));
  const cell = (value, at) => (isNumeric[at] ? (value ? Number(value) : null) : (value ?? null));
  return { columns, rows: rows.map((row) => columns.map((_, at) => cell(row[at], at))), isCut };
}

function isCsvNumber(value) {
  // A value with a leading zero is a code, such as a postal code.
  return !value || (/^-?(0|[1-9]\d{0,14})(\.\d+)?([eE][+-]?\d{1,2})?$/.test(value) && Number.isFinite(Number(value)));
}

function csvLines(text) {
  const lines = [];
  let line = [];
  let at = 0;
  while (at < text.length) {
    const field = text[at] === '"' ? quotedField(text, at) : plainField(text, at);
    line.push(field.value);
    at = field.end + 1;
    const isLastField = text[field.end] !== ",";
    // A comma at the very end is followed by an empty field.
    if (!isLastField && at === text.length) line.push("");
    if (!isLastField && at < text.length) continue;
    if (text[field.end] === "\r" && text[at] === "\n") at += 1;
    lines.push(line);
    line = [];
    if (lines.length > MOST_CSV_ROWS) break;
  }
  return { lines, isCut: at < text.length };
}

function quotedField(text, start) {
  let close = text.indexOf('"', start + 1);
  while (close >= 0 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
  // A quote that is never closed continues to the end.
  const end = close < 0 ? text.length : close;
  const rest = plainField(text, Math.min(end + 1, text.length));
  return { value: text.slice(start + 1, end).replaceAll('""', '"') + rest.value, end: rest.end };
}

function plainField(text, start) {
  let end = start;
  while (end < text.length && !",\r\n".includes(text[end])) end += 1;
  return { value: text.slice(start, end), end };
}
