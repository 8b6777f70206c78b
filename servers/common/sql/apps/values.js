// Values as the SQLite server sends them: JSON, or an object with a type for what JSON can't represent exactly.

import { cellText } from "../../web/dom.js";

const SHOWN_BYTES = 16;

/** A value for a table: numbers unchanged, large integers as BigInt, all others as text; null is null. */
export function plainCell(value) {
  if (value === null || typeof value !== "object") {
    return value;
  }
  switch (value.type) {
    case "integer":
      return /^-?\d{1,19}$/.test(value.value) ? BigInt(value.value) : cellText(value);
    case "real":
      return ["Infinity", "-Infinity"].includes(value.value) ? Number(value.value) : cellText(value);
    case "blob":
      return `blob, ${describeSize(value)}: ${firstBytes(value)}`;
    case "text":
      return typeof value.value === "string"
        ? `${value.value}… (truncated; ${describeSize(value)})`
        : `no UTF-8, ${describeSize(value)}: ${firstBytes(value)}`;
    default:
      return cellText(value);
  }
}

function describeSize({ bytes }) {
  return `${Number(bytes).toLocaleString("en-US")} byte${bytes === 1 ? "" : "s"}`;
}

function firstBytes({ base64 }) {
  const text = typeof base64 === "string" ? base64 : "";
  let raw = "";
  try {
    raw = atob(text.slice(0, Math.ceil(SHOWN_BYTES / 3) * 4));
  } catch {
    return "?";
  }
  const pairs = Array.from(raw.slice(0, SHOWN_BYTES), (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0"));
  return pairs.join(" ") + (text.length > Math.ceil(raw.length / 3) * 4 || raw.length > SHOWN_BYTES ? " …" : "");
}
