// Views of the result of a tool.
import { h, count, visible } from "../../common/web/dom.js";
import { numericColumns } from "../../common/web/points.js";
import "../../common/web/plot.js";
import { renderMarkdown } from "../../common/web/markdown.js";
import "../../common/web/table.js";
import "../../common/web/tree.js";
import "../../common/web/diff.js";
import "../../common/web/json.js";
import { blockView, foldingJson } from "./contents.js";
import { textTree } from "./text_tree.js";
import { tabbed } from "./tabs.js";

const MOST_TEXT = 500_000;
const MOST_BLOCKS = 200;
const DIFF = /^(?:diff --git |--- \S[^\n]*\n\+\+\+ |@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@)/m;
const MARKDOWN = /^(?:#{1,6} \S|```|\s*[-*] \[|\|[^\n]+\|\n\|[ :|-]+\|)|\]\(https?:\/\//m;

/** Views of a CallToolResult. `next` requests the page after a cursor; `openResource` shows a linked resource. */
export function resultView(result, { next = null, openResource }) {
  const blocks = Array.isArray(result.content) ? result.content : [];
  const views = [];
  if (isTable(result.structuredContent)) views.push(...tableViews(result.structuredContent, next));
  if (blocks.length === 1 && blocks[0]?.type === "text") views.push(...textViews(String(blocks[0].text)));
  else if (blocks.length) views.push({ label: "Content", make: () => blocksView(blocks, openResource) });
  if (result.structuredContent !== undefined && result.structuredContent !== null) {
    views.push({ label: "JSON", make: () => foldingJson(result.structuredContent) });
  }
  if (!views.length) views.push({ label: "Result", make: () => foldingJson(result) });
  if (!result.isError) return tabbed(views, "Views of the result");
  const failed = h("p", { class: "error", role: "alert", text: "The tool failed:" });
  return h("div", {}, failed, tabbed(views, "Views of the error"));
}

function isTable(content) {
  return Array.isArray(content?.columns) && Array.isArray(content?.rows) && content.rows.every(Array.isArray);
}

function tableViews(content, next) {
  const columns = content.columns.map((column, at) => {
    const name = typeof column === "object" ? column?.name : column;
    const type = content.declared?.[at] || content.types?.[at] || column?.type;
    return { name: String(name), ...(typeof type === "string" ? { type } : {}) };
  });
  const rows = content.rows;
  const views = [{ label: "Table", make: () => dataTable(columns, rows, content.next_cursor, next) }];
  if (numericColumns(columns, rows).length) views.push({ label: "Plot", make: () => dataPlot(columns, rows) });
  return views;
}

function dataTable(columns, rows, cursor, next) {
  const table = h("data-table", {});
  let left = typeof cursor === "string" ? cursor : null;
  const more = async () => {
    const { structuredContent } = await next(left);
    left = structuredContent?.next_cursor ?? null;
    return { rows: structuredContent?.rows ?? [], more: left ? more : null };
  };
  queueMicrotask(() => table.show({ columns, rows, more: left && next ? more : null }));
  return table;
}

function dataPlot(columns, rows) {
  const plot = h("data-plot", {});
  queueMicrotask(() => plot.show({ columns, rows }));
  return plot;
}

/** The views of a text, the most suitable first. */
function textViews(text) {
  const plain = { label: "Text", make: () => plainText(text) };
  const diff = diffIn(text);
  if (diff !== null) return [{ label: "Diff", make: () => diffOf(diff) }, plain];
  const json = jsonIn(text);
  if (json !== null) return [{ label: "JSON", make: () => foldingJson(json) }, plain];
  const nodes = textTree(text);
  if (nodes !== null) return [{ label: "Tree", make: () => treeOf(nodes) }, plain];
  const rendered = { label: "Rendered", make: () => markdownOf(text) };
  return MARKDOWN.test(text.slice(0, MOST_TEXT)) ? [rendered, plain] : [plain];
}

function plainText(text) {
  return h("pre", { class: "result-text", tabindex: "0", "aria-label": "Text", text: visible(text, MOST_TEXT) });
}

/** The unified diff in a text, even between fences. */
function diffIn(text) {
  const fenced = /^(`{3,})diff\n([\s\S]*?)\n\1/m.exec(text);
  if (fenced) return fenced[2];
  const found = DIFF.exec(text);
  return found && /^@@ -\d/m.test(text) ? text.slice(found.index) : null;
}

function diffOf(text) {
  const view = h("diff-view", {});
  view.show(text);
  return view;
}

function jsonIn(text) {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function treeOf(nodes) {
  const tree = h("tree-view", {});
  tree.show(nodes, { name: "Files", label: (node) => node.label, children: (node) => node.children });
  // Only the lines of the listing, without a note about omitted ones at the end.
  tree.open(nodes[0].key);
  return tree;
}

function markdownOf(text) {
  const body = h("div", { class: "markdown" });
  body.append(renderMarkdown(text, {}));
  return body;
}

function blocksView(blocks, openResource) {
  const shown = blocks.slice(0, MOST_BLOCKS).map((block) => {
    const view =
      block?.type === "text"
        ? tabbed(textViews(String(block.text)), "Views of the text")
        : blockView(block, openResource);
    return h("div", { class: "block" }, view);
  });
  const left = blocks.length - shown.length;
  return h(
    "div",
    {},
    ...shown,
    left > 0 ? h("p", { class: "muted", text: `${count(left)} more are not shown.` }) : null,
  );
}
