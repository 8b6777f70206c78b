// The rows of a tree: the elements of one node.
import { h, visible } from "./dom.js";

const DEEPEST_INDENT = 16;
const TREE_LABEL_LENGTH = 300;

/** The row of `node`, number `at` of `of` on its level: `{node, level, element, opens, open}`. */
export function treeRow(node, level, { at, of }, { label, detail, opens, children, onSelect }) {
  const text = typeof label === "function" ? label(node) : (node.label ?? node.key);
  const more = detail?.(node);
  const canOpen = Boolean(children) && (opens ? opens(node) : node.children !== null && node.leaf !== true);
  const element = rowElement(level, "tree-label", text);
  element.setAttribute("aria-posinset", at);
  element.setAttribute("aria-setsize", of);
  if (more !== null && more !== undefined && more !== "")
    element.append(h("span", { class: "tree-detail" }, asNode(more)));
  if (onSelect) element.setAttribute("aria-selected", "false");
  if (canOpen) element.setAttribute("aria-expanded", "false");
  return { node, level, element, opens: canOpen, open: false };
}

/** A row without a node: a remark, or an action `act`. */
export function treeOtherRow(text, level, act = null) {
  const element = rowElement(level, "tree-other", text);
  element.classList.toggle("tree-more", act !== null);
  return { node: null, level, element, act };
}

/** Shows `note` as the mark of a row; undefined removes it. */
export function markTreeRow({ element }, note) {
  element.querySelector(".tree-mark")?.remove();
  element.classList.toggle("tree-marked", note !== undefined);
  if (note !== undefined) element.append(h("span", { class: "badge tree-mark", text: visible(note, 40) }));
}

function rowElement(level, look, text) {
  const element = h("li", { role: "treeitem", class: "tree-row", tabindex: "-1", "aria-level": level });
  element.append(h("span", { class: "tree-twisty", "aria-hidden": true }), h("span", { class: look }, asNode(text)));
  element.style.setProperty("--level", Math.min(level - 1, DEEPEST_INDENT));
  return element;
}

function asNode(given) {
  return given instanceof Node ? given : document.createTextNode(visible(given, TREE_LABEL_LENGTH));
}
