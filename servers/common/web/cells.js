// One cell of a grid: its text is cut, and hidden characters are made visible.

import { cellText, h, visible } from "./dom.js";

const CUT_AT = 200;
const CELL_CHARACTER_PX = 7;

/** The cell with a column's name and type, right-aligned above numbers; `sort` is {column, down} or null. */
export function gridHeader({ name, type }, { id, column, sort, isNumeric }) {
  const direction = sort?.down ? "descending" : "ascending";
  const text = visible(name, CUT_AT);
  const props = {
    id: `${id}-${column}`,
    class: isNumeric ? "grid-cell grid-number" : "grid-cell",
    role: "columnheader",
    title: text,
    "aria-colindex": column + 1,
    "aria-sort": sort?.column === column ? direction : "none",
    "data-row": -1,
    "data-column": column,
  };
  const kind = type ? visible(type, CUT_AT) : "\u00a0";
  return h("div", props, h("bdi", { class: "grid-name", text }), h("bdi", { class: "grid-type", text: kind }));
}

/** The cell of a value; if the value does not fit, it has a button that shows all of it. */
export function gridCell(value, { id, row, column, width }) {
  const isNull = value === null || value === undefined;
  const text = isNull ? "NULL" : knownText(value);
  const kind = isNull ? "grid-null" : isNumber(value) ? "grid-number" : "";
  const props = {
    id: `${id}-${column}`,
    class: `grid-cell ${kind}`,
    role: "gridcell",
    "aria-colindex": column + 1,
    "data-row": row,
    "data-column": column,
  };
  const isCut = text.length * CELL_CHARACTER_PX > width || text.includes("\n");
  const shown = h("bdi", { text: visible(text, CUT_AT).replaceAll("\n", "↵") });
  return h("div", props, shown, isCut ? wholeButton() : null);
}

/** Returns true if a value is aligned like a number, with its last digit at the right. */
export function isNumber(value) {
  return typeof value === "number" || typeof value === "bigint";
}

function wholeButton() {
  const props = { class: "grid-whole", type: "button", tabindex: "-1", "aria-label": "Show the whole value" };
  return h("button", { ...props, text: "⋯" });
}

// The text of an object may be long, and is needed whenever its row comes into view.
const texts = new WeakMap();

function knownText(value) {
  if (typeof value !== "object") return cellText(value);
  if (!texts.has(value)) texts.set(value, cellText(value));
  return texts.get(value);
}
