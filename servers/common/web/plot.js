// <data-plot>: rows as bars, lines or points, by the columns that the user chooses.

import { cellText, clear, count, h, visible } from "./dom.js";
import { drawPoints } from "./drawing.js";
import { numericColumns, pointsOf, rangeOf, samplePoints } from "./points.js";
import { tickText } from "./scale.js";

const KINDS = { bars: 200, lines: 2_000, points: 4_000 };
const MOST_CHOICES = 200;
const NARROWEST_PX = 280;
const BY_NUMBER = "";
let plots = 0;

/** A plot. `show` sets its rows; the user's choices are kept while the columns are the same. */
export class DataPlot extends HTMLElement {
  #columns = [];
  #rows = [];
  #numeric = [];
  #parts = null;
  #width = 0;

  /** Plots `rows`, arrays of values, under `columns`, names or {name}. */
  show({ columns, rows }) {
    const named = columns.map((column) => (typeof column === "object" ? column : { name: String(column) }));
    const known = this.#columns.map(({ name }) => name);
    const isSame = named.length === known.length && named.every(({ name }, at) => name === known[at]);
    [this.#columns, this.#rows] = [named, rows];
    this.#numeric = numericColumns(named, rows);
    this.#build();
    if (!isSame || this.#parts.y.value === "") this.#offer();
    this.#draw();
  }

  #build() {
    if (this.#parts) return;
    const on = { change: () => this.#draw() };
    const [kind, x, y] = ["kind", "x", "y"].map((name) => h("select", { id: `plot-${plots}-${name}`, on }));
    plots += 1;
    clear(kind, Object.keys(KINDS).map((one) => h("option", { value: one, text: capital(one) })));
    const bar = h("div", { class: "toolbar" }, labelled("Kind", kind), labelled("Y", y), labelled("X", x));
    const title = h("figcaption");
    const image = h("div", { class: "plot-image" });
    const note = h("p", { class: "muted", role: "status" });
    this.#parts = { kind, x, y, bar, title, image, note };
    clear(this, bar, h("figure", {}, title, image), note);
    new ResizeObserver(([{ contentRect }]) => {
      if (Math.round(contentRect.width) !== this.#width) this.#draw();
    }).observe(image);
  }

  /** Offers the columns: by default, the first with texts or the key's, against the first other one with numbers. */
  #offer() {
    const { x, y } = this.#parts;
    const all = this.#columns.map((_, column) => column);
    clear(y, this.#options(this.#numeric));
    clear(x, h("option", { value: BY_NUMBER, text: "row number" }), this.#options(all));
    const texts = all.find((column) => !this.#numeric.includes(column) && column < MOST_CHOICES);
    const byNumbers = this.#numeric.length > 1 ? this.#numeric[0] : undefined;
    x.value = String(texts ?? byNumbers ?? BY_NUMBER);
    y.value = String(this.#numeric.find((column) => String(column) !== x.value) ?? "");
  }

  #options(columns) {
    const offered = columns.slice(0, MOST_CHOICES);
    const options = offered.map((column) => h("option", { value: String(column), text: this.#name(column) }));
    const left = columns.length - offered.length;
    if (left > 0) options.push(h("option", { disabled: true, value: "-", text: `and ${count(left)} more columns` }));
    return options;
  }

  #name(column) {
    return visible(this.#columns[column].name, 60).replaceAll("\n", " ");
  }

  #draw() {
    const { kind, x, y, bar, title, image, note } = this.#parts;
    const column = x.value === BY_NUMBER ? null : Number(x.value);
    const isNumeric = this.#numeric.includes(column);
    const { points, left } = pointsOf(this.#rows, { x: column, y: y.value && Number(y.value), isNumeric });
    bar.hidden = this.#numeric.length === 0;
    this.#width = Math.round(image.clientWidth);
    if (points.length === 0) {
      clear(image);
      title.textContent = "";
      note.textContent = "There are no numbers to plot.";
      return;
    }
    const kept = samplePoints(points, KINDS[kind.value], kind.value);
    const [low, high] = rangeOf(points, "y").map(tickText);
    const isByPlace = kind.value === "bars" || (column !== null && !isNumeric);
    const nameOf = ({ row }) => (column === null ? String(row + 1) : cellText(this.#rows[row][column]));
    title.textContent = `${this.#name(Number(y.value))} by ${this.#xTitle(column)}`;
    const drawn = drawPoints(kept, {
      kind: kind.value,
      width: Math.max(NARROWEST_PX, this.#width),
      nameOf: isByPlace ? nameOf : null,
      xTitle: this.#xTitle(column),
      label: title.textContent,
      detail: `${capital(kind.value)} for ${count(points.length)} rows, from ${low} to ${high}`,
    });
    clear(image, drawn);
    note.textContent = said(points.length, kept.length, left, kind.value);
  }

  #xTitle(column) {
    return column === null ? "row number" : this.#name(column);
  }
}

function labelled(text, control) {
  return h("span", { class: "plot-choice" }, h("label", { for: control.id, text }), control);
}

function capital(word) {
  return word[0].toUpperCase() + word.slice(1);
}

function said(all, kept, left, kind) {
  const how = kind === "points" ? "evenly chosen" : "the lowest and the highest in each interval";
  const cut = kept < all ? `Showing ${count(kept)} of ${count(all)} rows: ${how}.` : `Showing ${count(all)} rows.`;
  return left ? `${cut} ${count(left)} without a number ${left === 1 ? "is" : "are"} left out.` : cut;
}

customElements.define("data-plot", DataPlot);
