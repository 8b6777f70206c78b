// The error in a value as one sentence; null if it is valid.
import { count } from "./dom.js";

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const MOST_MATCHED = 300;
const FORMATS = {
  email: [/^[^\s@]{1,64}@[^\s@]{1,255}$/, "This is not an email address."],
  uri: [/^[a-z][a-z\d+.-]*:\S+$/i, "This is not a URI: it begins with a scheme, as in https://…"],
  date: [/^\d{4}-\d\d-\d\d$/, "This is not a date, such as 2026-01-31."],
  time: [/^\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?$/i, "This is not a time, such as 12:30:00."],
  "date-time": [
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?$/i,
    "This is not a date and time, such as 2026-01-31T12:30:00Z.",
  ],
  uuid: [/^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i, "This is not a UUID."],
  ipv4: [/^\d{1,3}(?:\.\d{1,3}){3}$/, "This is not an IPv4 address."],
};

/** Parses a number as typed: `{value}`, or `{problem}` if it can't be sent exactly. */
export function readNumber(typed, schema) {
  const text = typed.trim();
  if (!NUMBER.test(text)) return { problem: "This is not a number." };
  const value = Number(text);
  if (!Number.isFinite(value)) return { problem: "The number is too large." };
  if (schema.type === "integer" && !Number.isInteger(value)) return { problem: "Enter a whole number." };
  if (!isExact(text, value)) {
    return { problem: `This number can't be sent exactly; the maximum is ${count(Number.MAX_SAFE_INTEGER)}.` };
  }
  return { value: Object.is(value, -0) ? 0 : value, problem: checkNumber(value, schema) };
}

// JSON in browsers rounds integers beyond 2^53.
function isExact(text, value) {
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return true;
  return /^[+-]?\d+$/.test(text) ? String(value) === String(BigInt(text.replace("+", ""))) : true;
}

function checkNumber(value, { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf }) {
  if (typeof minimum === "number" && value < minimum) return `The minimum is ${minimum}.`;
  if (typeof maximum === "number" && value > maximum) return `The maximum is ${maximum}.`;
  if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum)
    return `Enter more than ${exclusiveMinimum}.`;
  if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum)
    return `Enter less than ${exclusiveMaximum}.`;
  if (multipleOf > 0 && !isMultiple(value, multipleOf)) return `Enter a multiple of ${multipleOf}.`;
  return null;
}

function isMultiple(value, step) {
  const times = value / step;
  return Math.abs(times - Math.round(times)) < 1e-9 * Math.max(1, Math.abs(times));
}

/** The error in a text that is not empty. */
export function checkText(text, { minLength, maxLength, pattern, format }) {
  const length = maxLength === undefined && minLength === undefined ? 0 : [...text].length;
  if (length < minLength)
    return `At least ${count(minLength)} characters are required; this has ${count(length)}.`;
  if (length > maxLength)
    return `At most ${count(maxLength)} characters are allowed; this has ${count(length)}.`;
  const known = Object.hasOwn(FORMATS, format ?? "") ? FORMATS[format] : null;
  if (known && !known[0].test(text)) return known[1];
  if (pattern !== undefined && !matchesPattern(text, pattern)) return `This does not match the pattern ${pattern}.`;
  return null;
}

// A server may send a pattern that takes forever. Patterns that may be slow, with several repetitions, are left to
// the server, which has to check its input anyway.
function matchesPattern(text, pattern) {
  const repeats = pattern.replace(/\\.|\[(?:\\.|[^\]\\])*\]|\(\?/g, "x").match(/[*+?]|\{\d*,/g) ?? [];
  const isSlow = /\)[*+{]/.test(pattern) || repeats.length > 3 || pattern.length > 500 || text.length > MOST_MATCHED;
  if (isSlow) return true;
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

/** Parses a JSON text: `{value}`, or `{problem}`. */
export function readJson(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { problem: `This is not JSON: ${error.message}` };
  }
  const literals = text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, '""').match(/-?\d[\d.eE+-]*/g) ?? [];
  const inexact = literals.find((one) => !isExact(one, Number(one)) || !Number.isFinite(Number(one)));
  return inexact ? { problem: `The number ${inexact.slice(0, 60)} can't be sent exactly.` } : { value };
}

/** The limits of a value in few words. */
export function boundsText(schema) {
  const low = schema.minimum ?? schema.exclusiveMinimum;
  const high = schema.maximum ?? schema.exclusiveMaximum;
  const words = [];
  if (low !== undefined && high !== undefined) words.push(`${low} to ${high}`);
  else if (low !== undefined) words.push(`${"minimum" in schema ? "at least" : "more than"} ${low}`);
  else if (high !== undefined) words.push(`${"maximum" in schema ? "at most" : "less than"} ${high}`);
  if (schema.minLength > 1) words.push(`at least ${count(schema.minLength)} characters`);
  if (schema.maxLength !== undefined) words.push(`at most ${count(schema.maxLength)} characters`);
  if (schema.minItems > 0) words.push(`at least ${count(schema.minItems)}`);
  if (schema.maxItems !== undefined) words.push(`at most ${count(schema.maxItems)}`);
  return words.join(", ");
}
