// The app for `read_query` and the canned queries that read: rows as a table and as a plot.

import { clear, h, visible } from "../../web/dom.js";
import { DataPlot } from "../../web/plot.js";
import { numericColumns } from "../../web/points.js";
import { DataTable } from "../../web/table.js";
import { connectHost, resultText } from "../../web/view.js";
import { plainCell } from "./values.js";
import { StatusLine, makeDisplayButton, showText } from "./frame.js";
import { makeTabs } from "./tabs.js";

const MOST_QUERY = 20_000;
const CANCELLED = "The query was cancelled.";

class ResultPage {
  #host = null;
  #given = null;
  #columns = [];
  #rows = [];
  #cursor = null;
  #status = new StatusLine();
  #facts = h("span", { class: "muted" });
  #full = makeDisplayButton();
  #query = h("pre", { tabindex: "0" });
  #source = h("details", { hidden: true }, h("summary", {}, "Query"), this.#query);
  #table = new DataTable();
  #plot = new DataPlot();
  #plotted = false;
  #text = h("div");

  constructor(place) {
    const panels = [this.#table, this.#plot].map((content) => h("section", { class: "panel" }, content));
    this.tabs = makeTabs([{ label: "Table", panel: panels[0] }, { label: "Plot", panel: panels[1] }], "View");
    this.tabs.addEventListener("select", (event) => event.detail === 1 && this.#draw());
    this.main = h("div", { hidden: true }, this.tabs, panels);
    const header = h("header", { class: "toolbar" }, h("h1", {}, "Result"), this.#facts, this.#full);
    clear(place, header, this.#source, this.#status, this.main, this.#text);
  }

  start() {
    this.#status.say("Waiting for the query…");
    return connectHost({
      name: "sqlite-result",
      version: "1.0.0",
      title: "Result of a query",
      onInput: (given) => this.#input(given),
      onPartialInput: (given) => this.#showQuery(given),
      onResult: (result) => this.#show(result),
      onCancelled: (reason) => this.#status.fail(reason === "" ? CANCELLED : `${CANCELLED} ${reason}`),
      onContext: (_, host) => this.#full.update(host),
    }).then((host) => {
      this.#host = host;
      this.#full.update(host);
    }, (error) => this.#status.fail(error.message));
  }

  #input(given) {
    this.#given = given;
    this.#showQuery(given);
    this.#status.say("Running…");
  }

  #showQuery({ query }) {
    this.#source.hidden = typeof query !== "string" || query === "";
    this.#query.textContent = visible(query ?? "", MOST_QUERY);
  }

  #show(result) {
    const found = result?.isError ? null : readPage(result?.structuredContent);
    this.#status.say("");
    this.main.hidden = found === null || found.columns.length === 0;
    clear(this.#text);
    if (this.main.hidden) {
      showText(this.#text, result);
      return;
    }
    this.#columns = found.columns;
    this.#rows = [];
    this.#take(found);
    this.#table.show({ columns: found.columns, rows: found.rows, more: this.#nextPage() });
    this.tabs.hidden = numericColumns(found.columns, found.rows).length === 0;
    this.tabs.select(0);
  }

  // Adds rows to the plot.
  #take({ rows, elapsed, cursor, truncated, changed }) {
    this.#rows = this.#rows.concat(rows);
    this.#cursor = cursor;
    this.#plotted = false;
    this.#facts.textContent = elapsed === null ? "" : `${elapsed.toLocaleString("en-US")} ms`;
    if (changed) {
      this.#status.say("The database has changed since the earlier rows, so some may be missing or repeated.");
    } else if (truncated && !this.#canGoOn()) {
      this.#status.say("There are more rows, but this host can't request them.");
    }
  }

  #canGoOn() {
    const knows = this.#cursor !== null && this.#given !== null;
    return knows && this.#host?.can("serverTools") && this.#toolName() !== null;
  }

  // A canned query has its own name, which only the host knows.
  #toolName() {
    return this.#host.tool ?? (typeof this.#given.query === "string" ? "read_query" : null);
  }

  #nextPage() {
    return this.#canGoOn() ? () => this.#readMore() : null;
  }

  async #readMore() {
    const result = await this.#host.callTool(this.#toolName(), { ...this.#given, cursor: this.#cursor });
    const found = result?.isError ? null : readPage(result?.structuredContent);
    if (found === null) {
      throw new Error(resultText(result) || "the answer has no rows");
    }
    this.#status.say("");
    this.#take(found);
    return { rows: found.rows, more: this.#nextPage() };
  }

  #draw() {
    if (!this.#plotted) {
      this.#plotted = true;
      this.#plot.show({ columns: this.#columns, rows: this.#rows });
    }
  }
}

/** The rows of a result with their columns; null if it has another form. */
function readPage(data) {
  if (!Array.isArray(data?.columns) || !Array.isArray(data.rows) || !data.rows.every(Array.isArray)) {
    return null;
  }
  return {
    columns: data.columns.map((name, at) => ({ name: String(name), type: describeType(data, at) })),
    rows: data.rows.map((row) => row.map(plainCell)),
    elapsed: Number.isFinite(data.elapsed_ms) ? data.elapsed_ms : null,
    cursor: typeof data.next_cursor === "string" ? data.next_cursor : null,
    truncated: data.truncated === true,
    changed: data.changed === true,
  };
}

// The declared type, and the stored type if it differs.
function describeType({ declared, types }, at) {
  const [promised, stored] = [declared?.[at] ?? "", types?.[at] ?? ""].map(String);
  const same = promised === "" || stored === "" || promised.toLowerCase() === stored;
  return same ? promised || stored : `${promised} · ${stored}`;
}

new ResultPage(document.querySelector("main")).start();
