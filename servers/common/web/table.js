// <data-table>: rows to filter, sort, page through and copy, whatever their number.

import { clear, copyText, count, h } from "./dom.js";
import { toCsv } from "./csv.js";
import { Grid } from "./grid.js";
import { orderRows } from "./order.js";
import { showWhole } from "./whole.js";

const MOST_HELD = 500_000;

/** A table. `show` sets its rows; the event `rows` reports more rows, in `event.detail`. */
export class DataTable extends HTMLElement {
  #columns = [];
  #rows = [];
  #more = null;
  #total = null;
  #sort = null;
  #order = new Uint32Array();
  #work = 0;
  #due = false;
  #parts = null;

  /** Shows `rows`, arrays of values, under `columns`, names or {name, type?}. `more` is null or a function that
   * returns {rows, more} of the next page; `total` is the total number of rows, if known. */
  async show({ columns, rows, more = null, total = null }) {
    this.#build();
    this.#columns = columns.map((column) => (typeof column === "object" ? column : { name: String(column) }));
    this.#rows = rows.slice(0, MOST_HELD);
    [this.#more, this.#total, this.#sort] = [more, total, null];
    this.#parts.filter.value = "";
    this.#parts.failure.hidden = true;
    this.#parts.grid.setColumns(this.#columns, this.#rows);
    await this.#arrange();
  }

  /** The rows that are shown, filtered and sorted, as CSV. */
  csv() {
    return toCsv(this.#columns, Array.from(this.#order, (row) => this.#rows[row]));
  }

  #build() {
    if (this.#parts) return;
    const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter rows" });
    filter.addEventListener("input", () => this.#schedule());
    const copy = h("button", { type: "button", text: "Copy as CSV", on: { click: () => this.#copy() } });
    const next = h("button", { type: "button", text: "Next page", hidden: true, on: { click: () => this.#load() } });
    const status = h("span", { class: "status", role: "status" });
    const failure = h("p", { class: "error", role: "alert", hidden: true });
    const grid = new Grid({
      label: this.getAttribute("aria-label") ?? "Rows",
      onSort: (column) => this.#sortBy(column),
      onOpen: (row, column) => this.#open(row, column),
    });
    this.#parts = { filter, copy, next, status, failure, grid };
    clear(this, h("div", { class: "toolbar" }, filter, status, next, copy), failure, grid.element);
  }

  // Typing is fast, and each letter makes the previous filter obsolete.
  #schedule() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      this.#arrange();
    });
  }

  #sortBy(column) {
    const isSame = this.#sort?.column === column;
    this.#sort = isSame && this.#sort.down ? null : { column, down: isSame };
    this.#arrange();
  }

  async #arrange() {
    const work = (this.#work += 1);
    const { filter, grid } = this.#parts;
    const wanted = { filter: filter.value, sort: this.#sort };
    grid.element.setAttribute("aria-busy", "true");
    const order = await orderRows(this.#rows, wanted, () => work === this.#work);
    if (order === null || work !== this.#work) return;
    this.#order = order;
    grid.setOrder(this.#rows, order, wanted.sort);
    grid.element.removeAttribute("aria-busy");
    this.#tell();
  }

  #tell() {
    const { status, next } = this.#parts;
    const held = this.#rows.length;
    const isFull = held >= MOST_HELD;
    const found = this.#order.length < held ? `${count(this.#order.length)} of ` : "";
    const rest = this.#total > held ? ` of ${count(this.#total)}` : this.#more ? " so far" : "";
    const end = isFull ? ", and no more are kept" : "";
    status.textContent = `${found}${count(held)} ${held === 1 ? "row" : "rows"}${rest}${end}`;
    next.hidden = !this.#more || isFull;
  }

  async #load() {
    const { next, failure } = this.#parts;
    const [rows, more] = [this.#rows, this.#more];
    next.disabled = true;
    failure.hidden = true;
    try {
      const page = await more();
      if (this.#rows !== rows) return; // another result has arrived in the meantime
      this.#rows = rows.concat(page.rows).slice(0, MOST_HELD);
      this.#more = page.more === true ? more : page.more || null;
    } catch (error) {
      failure.textContent = `The next page could not be loaded: ${error.message}`;
      failure.hidden = false;
      return;
    } finally {
      next.disabled = false;
    }
    await this.#arrange();
    const detail = { columns: this.#columns, rows: this.#rows };
    this.dispatchEvent(new CustomEvent("rows", { detail }));
  }

  async #copy() {
    const done = await copyText(this.csv());
    const { status } = this.#parts;
    status.textContent = done ? `Copied ${count(this.#order.length)} rows` : "Copying is not allowed here";
  }

  #open(row, column) {
    const dialog = showWhole(this.#columns[column].name, this.#rows[row][column] ?? "NULL");
    dialog.addEventListener("close", () => this.#parts.grid.element.focus());
  }
}

customElements.define("data-table", DataTable);
