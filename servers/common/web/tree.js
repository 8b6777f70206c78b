// <tree-view>: nested things, opened one level at a time, with the mouse or the keyboard.
import { clear, count, h, visible } from "./dom.js";
import { markTreeRow, treeOtherRow, treeRow } from "./tree_rows.js";

const MOST_TREE_ROWS_AT_ONCE = 200;
const MOST_TREE_ROWS = 10_000;
const MOST_TREE_MARKS = 1_000;
const TREE_LABEL_LENGTH = 300;

/**
 * `<tree-view>`. A node has a unique `key`. The rows of all levels are siblings, so that neither a deep nor a long
 * tree makes the document deep.
 */
export class TreeView extends HTMLElement {
  #options = {};
  #list = null;
  #rows = new Map();
  #byKey = new Map();
  #marks = new Map();
  #active = null;

  /**
   * Shows `nodes`. `label`: the name of the whole tree, or a function from a node to its text or element (by default
   * the node's `label`, or its key). `children(node)`: an array, a promise of one, or null for a leaf. `opens(node)`:
   * whether it can be opened, if requesting its children is expensive (by default: unless its `children` are null, or
   * `leaf` is true). `detail(node)`: a text or element after it. `onSelect(node)`: called after a click or Enter.
   * `name`: the name of the whole tree, if `label` is a function.
   */
  show(nodes, options = {}) {
    this.#options = options;
    this.#rows.clear();
    this.#byKey.clear();
    this.#active = null;
    const name = options.name ?? (typeof options.label === "string" ? options.label : "Tree");
    this.#list = h("ul", { role: "tree", class: "tree", "aria-label": name });
    this.#list.addEventListener("click", (event) => this.#click(event));
    this.#list.addEventListener("keydown", (event) => this.#key(event));
    this.#list.addEventListener("focusin", ({ target }) => this.#rows.has(target) && this.#activate(target, false));
    clear(this, this.#list);
    this.#add(null, [...nodes], 0);
    this.#activate(this.#list.firstElementChild, false);
  }

  /** Marks the node with `key` with a short note, now or when it comes into view; null removes the mark. */
  mark(key, note = "changed") {
    this.#marks.delete(key);
    if (note !== null) this.#marks.set(key, note);
    if (this.#marks.size > MOST_TREE_MARKS) this.#marks.delete(this.#marks.keys().next().value);
    const row = this.#byKey.get(key);
    if (row) markTreeRow(row, this.#marks.get(key));
  }

  /** Opens the node with `key`, if it is in view; resolves when its children are shown. */
  async open(key) {
    const row = this.#byKey.get(key);
    if (row?.opens && !row.open) await this.#open(row);
  }

  /** Closes the node with `key`. */
  close(key) {
    const row = this.#byKey.get(key);
    if (row?.open) this.#close(row);
  }

  /** Requests the children of the node with `key` again, and opens those that were open. */
  async reload(key) {
    const row = this.#byKey.get(key);
    if (!row?.open) return;
    const opened = this.#below(row)
      .filter((one) => one.open)
      .map((one) => one.node.key);
    this.#close(row);
    await this.#open(row);
    for (const one of opened) await this.open(one);
  }

  /** The keys of all nodes in view, in their order. */
  get keys() {
    return [...this.#rows.values()].filter((row) => row.node).map((row) => row.node.key);
  }

  #add(parent, items, from, before = null) {
    const room = Math.min(MOST_TREE_ROWS_AT_ONCE, MOST_TREE_ROWS - this.#rows.size);
    const shown = items.slice(from, from + Math.max(room, 0));
    const level = (parent?.level ?? 0) + 1;
    const rows = shown.map((node, at) => this.#nodeRow(node, level, at + from + 1, items.length));
    const rest = items.length - from - shown.length;
    if (rest > 0) {
      const text = room > 0 ? `and ${count(rest)} more` : `and ${count(rest)} more: close something to see them`;
      rows.push(treeOtherRow(text, level, () => this.#more(parent, items, from + shown.length)));
    }
    const elements = rows.map((row) => row.element);
    if (before) before.before(...elements);
    else if (parent) parent.element.after(...elements);
    else this.#list.append(...elements);
    // The map is in the order of arrival; the elements are in the order of the view.
    for (const row of rows) this.#rows.set(row.element, row);
    return elements[0];
  }

  #more(parent, items, from) {
    const button = this.#active;
    const first = this.#add(parent, items, from, button);
    this.#forget(button);
    this.#activate(first, true);
  }

  #nodeRow(node, level, at, of) {
    const row = treeRow(node, level, { at, of }, this.#options);
    this.#byKey.set(node.key, row);
    markTreeRow(row, this.#marks.get(node.key));
    return row;
  }

  async #open(row) {
    row.open = true;
    row.element.setAttribute("aria-expanded", "true");
    let items;
    try {
      items = this.#options.children(row.node);
      if (typeof items?.then === "function") {
        row.element.setAttribute("aria-busy", "true");
        items = await items;
      }
    } catch (error) {
      items = error instanceof Error ? error : new Error(String(error));
    }
    row.element.removeAttribute("aria-busy");
    // In the meantime it was closed, or another tree is shown, or it was opened again, which has its own request.
    if (!row.open || this.#rows.get(row.element) !== row || this.#below(row).length > 0) return;
    if (items instanceof Error) this.#tell(row, `Not read: ${visible(items.message, TREE_LABEL_LENGTH)}`, "error");
    else if (items === null || items === undefined) this.#makeLeaf(row);
    else if (items.length === 0) this.#tell(row, "(empty)", "muted");
    else this.#add(row, [...items], 0);
  }

  #tell(row, text, look) {
    const told = treeOtherRow(text, row.level + 1);
    told.element.lastElementChild.classList.add(look);
    row.element.after(told.element);
    this.#rows.set(told.element, told);
  }

  #makeLeaf(row) {
    row.opens = row.open = false;
    row.element.removeAttribute("aria-expanded");
  }

  #close(row) {
    row.open = false;
    row.element.setAttribute("aria-expanded", "false");
    const below = this.#below(row);
    const isActive = below.some((one) => one.element === this.#active);
    if (isActive) this.#activate(row.element, this.#active === document.activeElement);
    for (const one of below) this.#forget(one.element);
  }

  #below(row) {
    const found = [];
    for (let next = row.element.nextElementSibling; next; next = next.nextElementSibling) {
      const one = this.#rows.get(next);
      if (one.level <= row.level) break;
      found.push(one);
    }
    return found;
  }

  #forget(element) {
    const row = this.#rows.get(element);
    this.#rows.delete(element);
    if (row.node && this.#byKey.get(row.node.key) === row) this.#byKey.delete(row.node.key);
    element.remove();
  }

  #activate(element, focus) {
    this.#active?.setAttribute("tabindex", "-1");
    this.#active = element;
    element?.setAttribute("tabindex", "0");
    if (focus) element?.focus({ preventScroll: false });
  }

  #click(event) {
    const element = event.target.closest("[role=treeitem]");
    const row = this.#rows.get(element);
    if (!row || event.target.closest("a, button")) return;
    this.#activate(element, true);
    if (event.target.closest(".tree-twisty") && row.opens) this.#toggle(row);
    else this.#choose(row, true);
  }

  #choose(row, toggles) {
    if (row.act) return row.act();
    if (!row.node) return;
    if (this.#options.onSelect) {
      this.#list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
      row.element.setAttribute("aria-selected", "true");
      this.#options.onSelect(row.node);
    }
    if (toggles && row.opens) this.#toggle(row);
  }

  #toggle(row) {
    if (row.open) this.#close(row);
    else void this.#open(row);
  }

  #key(event) {
    const row = this.#rows.get(event.target);
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const moved = this.#moveFor(event.key, row);
    if (moved) this.#activate(moved, true);
    else if (event.key === "ArrowRight" && row.opens && !row.open) void this.#open(row);
    else if (event.key === "ArrowLeft" && row.open) this.#close(row);
    else if (event.key === "Enter" || event.key === " ") this.#choose(row, true);
    else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
  }

  #moveFor(key, { element, level, open }) {
    if (key === "ArrowDown") return element.nextElementSibling;
    if (key === "ArrowUp") return element.previousElementSibling;
    if (key === "Home") return this.#list.firstElementChild;
    if (key === "End") return this.#list.lastElementChild;
    if (key === "ArrowRight" && open) return element.nextElementSibling;
    if (key === "ArrowLeft" && !open) return this.#parentOf(element, level);
    return key.length === 1 && key !== " " ? this.#startingWith(key, element) : null;
  }

  #parentOf(element, level) {
    let above = element.previousElementSibling;
    while (above && this.#rows.get(above).level >= level) above = above.previousElementSibling;
    return above;
  }

  #startingWith(letter, element) {
    const all = [...this.#list.children];
    const at = all.indexOf(element) + 1;
    const wanted = letter.toLowerCase();
    return [...all.slice(at), ...all.slice(0, at)].find((one) =>
      one.querySelector(".tree-label")?.textContent.trim().toLowerCase().startsWith(wanted),
    );
  }
}

customElements.define("tree-view", TreeView);
