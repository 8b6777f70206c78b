// One table next to the diagram: its columns, its keys in both directions, and a few rows.

import { clear, count, h, visible } from "../../web/dom.js";
import { completeColumns } from "./tables.js";
import { plainCell } from "./values.js";

const MOST_COLUMNS_TOLD = 200;
const MOST_LINKS_TOLD = 50;
const MOST_SAMPLE_COLUMNS = 30;
const MOST_NAME = 300;
const MOST_CELL = 120;

/** Shows a table; dispatches `choose` with the index of another table to show, and `close`. */
export class TableDetails extends HTMLElement {
  #shown = 0;

  /** Shows the table at `index`; `load()` returns its first rows, `{columns, rows}`, or null if it has none. */
  async show(tables, index, load) {
    const table = tables[index];
    const sample = h("div", { class: "sample", "aria-live": "polite" });
    const columns = h("div", {}, columnTable(table));
    const told = h("p", { class: "muted" }, facts(table));
    this.#shown += 1;
    const shown = this.#shown;
    clear(
      this,
      h("div", { class: "toolbar" },
        h("h2", { tabindex: "-1" }, visible(table.name, MOST_NAME)),
        h("button", { type: "button", class: "plain", on: { click: () => this.#tell("close") } }, "Close"),
      ),
      told,
      columns,
      this.#links("Refers to", table.links.map((link) => ({ ...link, text: describeLink(tables, link) }))),
      this.#links("Referred to by", findReferring(tables, index)),
      load === null ? null : h("h3", {}, "First rows"),
      sample,
    );
    this.hidden = false;
    if (load === null) {
      return;
    }
    sample.textContent = "Reading…";
    const found = await load().catch((error) => error);
    if (shown !== this.#shown) {
      return;
    }
    if (found instanceof Error) {
      clear(sample, failedLine(found));
      return;
    }
    const whole = { ...table, columns: completeColumns(table.columns, found) };
    clear(columns, columnTable(whole));
    clear(told, facts(whole));
    clear(sample, sampleTable(found));
  }

  /** Focuses the heading. */
  enter() {
    this.querySelector("h2")?.focus({ preventScroll: true });
  }

  #links(title, links) {
    if (links.length === 0) {
      return null;
    }
    const items = links.slice(0, MOST_LINKS_TOLD).map(({ to, text }) => {
      const go = { click: () => this.#tell("choose", to) };
      return h("li", {}, to === null ? text : h("button", { type: "button", class: "link", on: go }, text));
    });
    const more = links.length - items.length;
    const rest = more > 0 ? h("li", {}, `and ${count(more)} more`) : null;
    return h("section", {}, h("h3", {}, title), h("ul", {}, items, rest));
  }

  #tell(name, detail = null) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

customElements.define("table-details", TableDetails);

/** Kind, rows and columns of a table in words. */
export function facts(table) {
  const rows = Number.isFinite(table.rows) ? `about ${count(table.rows)} rows` : null;
  const number = table.columns.length;
  const columns = number > 0 ? `${count(number)} column${number === 1 ? "" : "s"}` : null;
  return [table.kind, rows, columns].filter((fact) => fact !== null).join(" · ");
}

function columnTable(table) {
  const rows = table.columns.slice(0, MOST_COLUMNS_TOLD).map((column) => {
    const marks = [
      column.primary_key ? "PK" : null,
      table.keys.has(column.name) ? "FK" : null,
      column.not_null ? "NOT NULL" : null,
    ].filter((mark) => mark !== null);
    return h("tr", {},
      h("th", { scope: "row" }, visible(column.name, MOST_NAME)),
      h("td", {}, visible(column.type ?? "", MOST_NAME)),
      h("td", {}, marks.map((mark) => h("span", { class: "badge" }, mark))),
    );
  });
  const more = table.columns.length - rows.length;
  const heads = ["Column", "Type", "Key"].map((name) => h("th", { scope: "col" }, name));
  return h("div", {}, plainTable("Columns", heads, rows), moreColumns(more));
}

function describeLink(tables, { to, columns, table, toColumns }) {
  const target = to === null ? `${visible(table, MOST_NAME)} (not here)` : visible(tables[to].name, MOST_NAME);
  return `${nameList(columns)} → ${target}${toColumns.length > 0 ? ` (${nameList(toColumns)})` : ""}`;
}

function findReferring(tables, index) {
  return tables.flatMap((table, from) =>
    table.links
      .filter((link) => link.to === index)
      .map((link) => ({ to: from, text: `${visible(table.name, MOST_NAME)} (${nameList(link.columns)})` })),
  );
}

function nameList(columns) {
  return visible(columns.join(", "), MOST_NAME);
}

function sampleTable({ columns, rows }) {
  if (rows.length === 0) {
    return h("p", { class: "muted" }, "The table has no rows.");
  }
  const shown = columns.slice(0, MOST_SAMPLE_COLUMNS);
  const heads = shown.map((name) => h("th", { scope: "col" }, visible(name, MOST_CELL)));
  const body = rows.map((row) => h("tr", {}, shown.map((_, at) => sampleCell(row[at]))));
  const scroller = { class: "scroller", tabindex: "0", role: "region", "aria-label": "First rows" };
  const table = h("div", scroller, plainTable("First rows", heads, body));
  return h("div", {}, table, moreColumns(columns.length - shown.length));
}

function plainTable(caption, heads, rows) {
  const name = h("caption", { class: "visually-hidden" }, caption);
  return h("table", {}, name, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows));
}

function moreColumns(more) {
  return more > 0 ? h("p", { class: "muted" }, `and ${count(more)} more columns`) : null;
}

function sampleCell(value) {
  const cell = plainCell(value);
  return cell === null ? h("td", { class: "null" }, "NULL") : h("td", {}, visible(cell, MOST_CELL));
}

function failedLine(error) {
  return h("p", { class: "error" }, visible(error.message, 2_000));
}
