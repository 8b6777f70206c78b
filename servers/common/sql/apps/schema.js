// The app for `describe_database`: the tables of a database and their keys, as a diagram and as a list.

import { clear, count, h, visible } from "../../web/dom.js";
import { connectHost, resultText } from "../../web/view.js";
import { SchemaDiagram } from "./diagram.js";
import { TableDetails, facts } from "./details.js";
import { StatusLine, makeDisplayButton, showText } from "./frame.js";
import { readTables } from "./tables.js";
import { makeTabs } from "./tabs.js";

const SAMPLE = 5;
const MOST_LISTED = 100;
const NARROW = "(max-width: 600px)";

class SchemaPage {
  #host = null;
  #database = null;
  #tables = [];
  #status = new StatusLine();
  #title = h("h1", {}, "Schema");
  #facts = h("span", { class: "muted" });
  #full = makeDisplayButton();
  #diagram = new SchemaDiagram();
  #list = h("div", { class: "list" });
  #details = new TableDetails();
  #find = h("input", { type: "search", placeholder: "Find a table", "aria-label": "Find a table" });
  #main = h("div", { class: "parts" });
  #from = null;

  constructor(place) {
    const panels = [this.#diagram, this.#list].map((content) => h("section", { class: "panel" }, content));
    this.tabs = makeTabs([{ label: "Diagram", panel: panels[0] }, { label: "List", panel: panels[1] }], "View");
    this.tools = h("div", { class: "toolbar", hidden: true }, this.tabs, this.#find);
    this.#details.hidden = true;
    this.#main.append(...panels, this.#details);
    this.#main.hidden = true;
    this.text = h("div");
    clear(place, h("header", { class: "toolbar" }, this.#title, this.#facts, this.#full), this.tools, this.#status);
    place.append(this.#main, this.text);
    for (const source of [this.#diagram, this.#details]) {
      source.addEventListener("choose", (event) => this.#choose(event.detail));
    }
    this.#details.addEventListener("close", () => this.#close());
    this.#find.addEventListener("input", () => this.#search());
    this.#find.addEventListener("keydown", (event) => event.key === "Enter" && this.#chooseFirst());
    place.addEventListener("keydown", (event) => event.key === "Escape" && !this.#details.hidden && this.#close());
  }

  start() {
    this.#status.say("Waiting for the database…");
    return connectHost({
      name: "sqlite-schema",
      version: "1.0.0",
      title: "Schema of a database",
      onInput: (given) => this.#input(given),
      onResult: (result) => this.#show(result),
      onCancelled: (reason) => this.#status.fail(reason === "" ? "The call was cancelled." : `Cancelled: ${reason}`),
      onContext: (_, host) => this.#full.update(host),
    }).then((host) => {
      this.#host = host;
      this.#full.update(host);
    }, (error) => this.#status.fail(error.message));
  }

  #input({ database }) {
    this.#database = typeof database === "string" ? database : null;
    this.#status.say("Reading the schema…");
  }

  #show(result) {
    const schema = result?.isError ? null : readTables(result?._meta?.view);
    this.#status.say("");
    this.#main.hidden = schema === null;
    this.tools.hidden = schema === null;
    if (schema === null) {
      showText(this.text, result);
      return;
    }
    clear(this.text);
    this.#tables = schema.tables;
    this.#database ??= schema.database;
    this.#title.textContent = visible(schema.database ?? "Schema", 100);
    this.#facts.textContent = describeCounts(schema);
    this.#details.hidden = true;
    this.tabs.select(matchMedia(NARROW).matches ? 1 : 0);
    this.#diagram.show(this.#tables);
    this.#search();
  }

  #choose(index) {
    if (this.#details.hidden) {
      this.#from = document.activeElement;
    }
    const load = this.#host?.can("serverTools") ? () => this.#sample(this.#tables[index].name) : null;
    this.#details.show(this.#tables, index, load);
    this.#diagram.choose(index);
    this.#details.enter();
  }

  #close() {
    this.#details.hidden = true;
    this.#diagram.choose(null);
    if (this.#from?.isConnected) {
      this.#from.focus({ preventScroll: true });
    } else {
      this.tabs.querySelector("[aria-selected=true]").focus();
    }
  }

  async #sample(name) {
    const query = `SELECT * FROM "${name.replaceAll('"', '""')}" LIMIT ${SAMPLE}`;
    const given = this.#database === null ? { query } : { query, database: this.#database };
    const result = await this.#host.callTool("read_query", given);
    const found = result?.structuredContent;
    if (result?.isError || !Array.isArray(found?.rows) || !Array.isArray(found?.columns)) {
      throw new Error(resultText(result) || "The rows could not be read.");
    }
    return found;
  }

  #found() {
    const wanted = this.#find.value.trim().toLowerCase();
    return this.#tables.flatMap((table, index) => (table.name.toLowerCase().includes(wanted) ? [index] : []));
  }

  #search() {
    const found = this.#found();
    const shown = found.slice(0, MOST_LISTED);
    const items = shown.map((index) => {
      const go = { click: () => this.#choose(index) };
      const name = h("button", { type: "button", class: "link", on: go }, visible(this.#tables[index].name, 200));
      return h("li", {}, name, h("span", { class: "muted" }, facts(this.#tables[index])));
    });
    const left = found.length - shown.length;
    const note = left > 0 ? `and ${count(left)} more: find them by their names` : "No such table.";
    const noted = left > 0 || found.length === 0;
    clear(this.#list, h("ul", {}, items), noted ? h("p", { class: "muted" }, note) : null);
  }

  #chooseFirst() {
    const [first] = this.#found();
    if (first !== undefined) {
      this.#choose(first);
    }
  }
}

function describeCounts({ tables, more }) {
  const views = tables.filter((table) => table.kind === "view").length;
  const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
  const counts = [plural(tables.length - views, "table"), views > 0 ? plural(views, "view") : ""];
  return [...counts, more ? "and more than fit here" : ""].filter((text) => text !== "").join(", ");
}

new SchemaPage(document.querySelector("main")).start();
