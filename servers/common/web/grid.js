// The grid of a table. Only the visible cells, and a few around them, are elements.
//
// The focus stays on the grid itself, and `aria-activedescendant` names the active cell, since that cell may scroll
// out of view, and its element with it. Row -1 is the header.

import { gridCell, gridHeader, isNumber } from "./cells.js";
import { columnAt, columnStarts } from "./columns.js";
import { clear, h } from "./dom.js";

// The heights in table.css, and the number of rows and pixels drawn around the visible part.
const ROW = 28;
const HEAD = 44;
const AROUND = 6;
const MOST_ROWS = 200;
let grids = 0;

/** Shows rows in an order; calls `onSort(column)` and `onOpen(row, column)`. Its `element` belongs into a page. */
export class Grid {
  #id = `grid-${(grids += 1)}`;
  #columns = [];
  #rows = [];
  #order = new Uint32Array();
  #sort = null;
  #starts = new Float64Array(1);
  #active = { row: 0, column: 0 };
  #shown = new Map();
  #range = { first: 0, last: 0 };
  #due = false;

  constructor({ label, onSort, onOpen }) {
    this.onSort = onSort;
    this.onOpen = onOpen;
    this.head = h("div", { class: "grid-head", role: "row", "aria-rowindex": "1" });
    this.body = h("div", { class: "grid-body", role: "rowgroup" });
    const props = { class: "grid", role: "grid", tabindex: "0", "aria-label": label, "aria-readonly": "true" };
    const on = {
      scroll: () => this.#schedule(),
      keydown: (event) => this.#press(event),
      click: (event) => this.#click(event),
      dblclick: (event) => this.#open(this.#cellOf(event.target)),
    };
    this.element = h("div", { ...props, on }, this.head, this.body);
    new ResizeObserver(() => this.#schedule()).observe(this.element);
  }

  /** Starts again with other columns. */
  setColumns(columns, rows) {
    this.#columns = columns;
    this.#rows = rows;
    this.#starts = columnStarts(columns, rows);
    this.#active = { row: 0, column: 0 };
    this.element.scrollTo(0, 0);
    this.#range = { first: 0, last: 0 };
    this.element.setAttribute("aria-colcount", String(columns.length));
    const width = `${this.#starts[columns.length]}px`;
    for (const part of [this.head, this.body]) part.style.setProperty("width", width);
  }

  /** Shows `rows` in `order`, sorted by `sort` ({column, down} or null). */
  setOrder(rows, order, sort) {
    this.#rows = rows;
    this.#order = order;
    this.#sort = sort;
    this.#active.row = Math.min(this.#active.row, order.length - 1);
    this.body.style.setProperty("height", `${order.length * ROW}px`);
    this.element.setAttribute("aria-rowcount", String(order.length + 1));
    this.#repaint();
  }

  #schedule() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      this.#paint();
    });
  }

  /** Draws the visible cells: adds rows that have come into view, or all of them if the columns have changed. */
  #paint() {
    const { scrollLeft, clientWidth } = this.element;
    const first = Math.max(0, columnAt(this.#starts, scrollLeft) - 1);
    const last = Math.min(this.#columns.length, columnAt(this.#starts, scrollLeft + (clientWidth || 800)) + 2);
    if (first !== this.#range.first || last !== this.#range.last) {
      this.#range = { first, last };
      this.#repaint();
      return;
    }
    const top = Math.max(0, Math.floor(this.element.scrollTop / ROW) - AROUND);
    const seen = Math.min(MOST_ROWS, Math.ceil((this.element.clientHeight || 400) / ROW) + 2 * AROUND);
    this.#paintRows(top, Math.min(this.#order.length, top + seen));
    this.#mark();
  }

  #repaint() {
    this.#shown.clear();
    clear(this.body);
    const id = `${this.#id}-head`;
    const header = (column) => {
      const isNumeric = isNumber(this.#rows.slice(0, MOST_ROWS).find((row) => row[column] != null)?.[column]);
      return gridHeader(this.#columns[column], { id, column, sort: this.#sort, isNumeric });
    };
    clear(this.head, this.#cells(header));
    this.#paint();
  }

  #paintRows(top, bottom) {
    for (const [row, element] of this.#shown) {
      if (row >= top && row < bottom) continue;
      element.remove();
      this.#shown.delete(row);
    }
    const added = [];
    for (let row = top; row < bottom; row += 1) {
      if (!this.#shown.has(row)) added.push(this.#row(row));
    }
    this.body.append(...added);
  }

  #row(row) {
    const values = this.#rows[this.#order[row]];
    const id = `${this.#id}-${row}`;
    const cells = this.#cells((column) => gridCell(values[column], { id, row, column, width: this.#width(column) }));
    const element = h("div", { class: "grid-row", role: "row", "aria-rowindex": row + 2 }, cells);
    element.style.setProperty("transform", `translateY(${row * ROW}px)`);
    this.#shown.set(row, element);
    return element;
  }

  #cells(make) {
    const cells = [];
    for (let column = this.#range.first; column < this.#range.last; column += 1) {
      const cell = make(column);
      cell.style.setProperty("left", `${this.#starts[column]}px`);
      cell.style.setProperty("width", `${this.#width(column)}px`);
      cells.push(cell);
    }
    return cells;
  }

  #width(column) {
    return this.#starts[column + 1] - this.#starts[column];
  }

  #cellOf(target) {
    const cell = target.closest?.("[data-column]");
    return cell ? { row: Number(cell.dataset.row), column: Number(cell.dataset.column) } : null;
  }

  #click(event) {
    const at = this.#cellOf(event.target);
    if (!at) return;
    this.#active = at;
    if (at.row < 0) this.onSort(at.column);
    else if (event.target.closest("button")) this.#open(at);
    this.#mark();
  }

  #open(at) {
    if (at && at.row >= 0 && at.row < this.#order.length) this.onOpen(this.#order[at.row], at.column);
  }

  #press(event) {
    const { row, column } = this.#active;
    const [lastRow, lastColumn] = [this.#order.length - 1, this.#columns.length - 1];
    const page = Math.max(1, Math.floor((this.element.clientHeight - HEAD) / ROW) - 1);
    const far = event.ctrlKey || event.metaKey;
    const move = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      PageUp: [row < 0 ? -1 : Math.max(0, row - page), column],
      PageDown: [row + page, column],
      Home: [far ? 0 : row, 0],
      End: [far ? lastRow : row, lastColumn],
    }[event.key];
    if (event.altKey || event.target !== this.element || lastColumn < 0) return;
    if (move) this.#go(Math.max(-1, Math.min(lastRow, move[0])), Math.max(0, Math.min(lastColumn, move[1])));
    else if ((event.key === "Enter" || event.key === " ") && row < 0) this.onSort(column);
    else if (event.key === "Enter") this.#open(this.#active);
    else return;
    event.preventDefault();
  }

  #go(row, column) {
    this.#active = { row, column };
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.element;
    const [left, right] = [this.#starts[column], this.#starts[column + 1]];
    const x = Math.min(left, Math.max(scrollLeft, right - clientWidth));
    const y = row < 0 ? scrollTop : Math.min(row * ROW, Math.max(scrollTop, (row + 1) * ROW + HEAD - clientHeight));
    this.element.scrollTo(x, y);
    this.#paint();
  }

  #mark() {
    this.element.querySelector(".grid-active")?.classList.remove("grid-active");
    const { row, column } = this.#active;
    const cell = this.element.querySelector(`#${this.#id}-${row < 0 ? "head" : row}-${column}`);
    cell?.classList.add("grid-active");
    if (cell) this.element.setAttribute("aria-activedescendant", cell.id);
    else this.element.removeAttribute("aria-activedescendant");
  }
}
