// <json-view>: a JSON value as a foldable tree, whose children are created when they are opened.
import { clear, copyText, count, h, visible } from "./dom.js";
import { TreeView } from "./tree.js";

const JSON_SHORT_TEXT = 200;
const JSON_LONG_TEXT = 100_000;
const MOST_JSON_OPENED = 500;
const JSON_OPENED_AT_FIRST = 60;

/** `<json-view>`: `show(value)` shows any JSON value. */
export class JsonView extends HTMLElement {
  #tree = new TreeView();
  // The keys of long texts, which are shown in full only on request.
  #long = new Set();
  #status = h("span", { class: "muted", role: "status" });

  /** Shows `value`, called `name`; short values are opened. */
  show(value, { name = "JSON" } = {}) {
    const copy = h("button", { type: "button", text: "Copy", on: { click: () => void this.#copy(value) } });
    const open = h("button", {
      type: "button",
      text: "Expand all",
      on: { click: () => this.#openUpTo(MOST_JSON_OPENED) },
    });
    const fold = h("button", { type: "button", text: "Collapse all", on: { click: () => this.#fold() } });
    const folds = isJsonOpenable(value) && jsonSize(value) > 0;
    clear(
      this,
      h("div", { class: "toolbar" }, copy, folds ? open : null, folds ? fold : null, this.#status),
      this.#tree,
    );
    this.#status.textContent = "";
    this.#long.clear();
    this.#tree.show([{ key: "$", name: null, value }], {
      name,
      label: jsonLabel,
      children: jsonChildren,
      opens: (node) => this.#opens(node),
    });
    this.#openUpTo(JSON_OPENED_AT_FIRST);
  }

  #opens({ key, value, whole }) {
    if (typeof value === "string" && value.length > JSON_SHORT_TEXT) this.#long.add(key);
    return isJsonOpenable(value) && jsonSize(value) > 0 && !whole;
  }

  // Level by level, so that a large value shows its outline.
  #openUpTo(most) {
    let opened = 0;
    for (let level = 0; opened < most && level < most; level += 1) {
      const before = this.#tree.keys.length;
      for (const key of this.#tree.keys) {
        if (opened < most && !this.#long.has(key)) void this.#tree.open(key);
        opened = this.#tree.keys.length;
      }
      if (this.#tree.keys.length === before) return;
    }
  }

  #fold() {
    this.#tree.close("$");
    void this.#tree.open("$");
  }

  async #copy(value) {
    let text;
    try {
      text = JSON.stringify(value, null, 2);
    } catch {
      this.#status.textContent = "It is nested too deeply to be copied.";
      return;
    }
    this.#status.textContent = (await copyText(text)) ? "Copied" : "The browser does not allow copying.";
  }
}

function isJsonOpenable(value) {
  return typeof value === "string" ? value.length > JSON_SHORT_TEXT : typeof value === "object" && value !== null;
}

function jsonSize(value) {
  if (typeof value === "string") return value.length;
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

function jsonChildren({ key, value }) {
  if (typeof value === "string") return [{ key: `${key}/whole`, name: null, value, whole: true }];
  const names = Array.isArray(value) ? value.keys() : Object.keys(value);
  return Array.from(names, (name, at) => ({ key: `${key}/${at}`, name, value: value[name] }));
}

function jsonLabel({ name, value, whole }) {
  if (whole) return h("span", { class: "json-string json-whole", text: visible(value, JSON_LONG_TEXT) });
  const row = h("span", {});
  if (name !== null) {
    row.append(
      h("span", { class: "json-name", text: visible(name, JSON_SHORT_TEXT) }),
      h("span", { class: "muted", text: ": " }),
    );
  }
  row.append(h("span", { class: `json-${jsonKind(value)}`, text: jsonInShort(value) }));
  return row;
}

function jsonKind(value) {
  if (value === null || value === undefined) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function jsonInShort(value) {
  if (typeof value === "string") return JSON.stringify(visible(value, JSON_SHORT_TEXT)).replaceAll("\\n", "↵");
  if (Array.isArray(value))
    return value.length ? `[${count(value.length)} ${value.length === 1 ? "item" : "items"}]` : "[]";
  if (typeof value !== "object" || value === null) return String(value);
  const names = Object.keys(value);
  if (!names.length) return "{}";
  const more = names.length > 3 ? `, … ${count(names.length - 3)} more` : "";
  return `{${visible(names.slice(0, 3).join(", "), 60)}${more}}`;
}

customElements.define("json-view", JsonView);
