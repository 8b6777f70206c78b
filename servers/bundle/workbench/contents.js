// Views of the contents of resources and messages.
import { h, visible } from "../../common/web/dom.js";
import { renderMarkdown } from "../../common/web/markdown.js";
import "../../common/web/json.js";
import "../../common/web/table.js";
import { parseCsv } from "./csv_reader.js";
import { actionButton, folded, remark } from "./pieces.js";

const MOST_CONTENT = 500_000;
const PICTURE = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const SOUND = /^audio\/[\w.+-]+$/;

/** One of the contents of `resources/read`: a table, rendered Markdown, a picture, folding JSON, or text. */
export function contentView(content) {
  const type = String(content?.mimeType ?? "")
    .split(";")[0]
    .trim()
    .toLowerCase();
  if (typeof content?.blob === "string") return binaryView(content.blob, type, content.uri);
  const text = String(content?.text ?? "");
  if (type === "text/markdown") return withSource(renderedMarkdown(text), text);
  if (type === "text/csv") return withSource(csvView(text), text);
  if (type === "application/json" || type.endsWith("+json")) return jsonTextView(text);
  return plainTextView(text);
}

/** One block of a message: text as Markdown, a picture, a sound, a resource or a link to one. */
export function blockView(block, openResource) {
  if (block?.type === "text") return renderedMarkdown(String(block.text ?? ""));
  if (block?.type === "image" || block?.type === "audio")
    return binaryView(block.data, block.mimeType ?? "", block.type);
  if (block?.type === "resource") {
    const uri = h("code", { text: visible(block.resource?.uri ?? "", 500) });
    return h("figure", {}, h("figcaption", {}, uri), contentView(block.resource));
  }
  if (block?.type === "resource_link") {
    const open = () => openResource(block.uri);
    return h("button", {
      type: "button",
      text: visible(`Open ${block.title || block.name || block.uri}`, 300),
      on: { click: open },
    });
  }
  return foldingJson(block);
}

/** JSON that folds. */
export function foldingJson(value) {
  const view = h("json-view", {});
  view.show(value);
  return view;
}

function plainTextView(text) {
  return h("pre", { tabindex: "0", "aria-label": "Text", text: visible(text, MOST_CONTENT) });
}

function renderedMarkdown(text) {
  const body = h("div", { class: "markdown" });
  body.append(renderMarkdown(text, {}));
  return body;
}

function withSource(view, text) {
  return h(
    "div",
    {},
    view,
    folded("Source", () => plainTextView(text)),
  );
}

function csvView(text) {
  const { columns, rows, isCut } = parseCsv(text);
  if (!columns.length) return plainTextView(text);
  const table = h("data-table", {});
  table.show({ columns, rows });
  const note = isCut ? remark(`Only the first ${rows.length} rows are shown.`) : null;
  return h("div", {}, table, note);
}

function jsonTextView(text) {
  try {
    return withSource(foldingJson(JSON.parse(text)), text);
  } catch {
    return plainTextView(text);
  }
}

function binaryView(data, type, name) {
  const base64 = String(data ?? "");
  const address = `data:${type};base64,${base64}`;
  if (PICTURE.test(type)) return h("img", { class: "picture", src: address, alt: visible(`Picture ${name}`, 200) });
  if (SOUND.test(type))
    return h("audio", { controls: true, src: address, "aria-label": visible(`Sound ${name}`, 200) });
  const size = Math.floor((base64.replace(/=+$/, "").length * 3) / 4);
  const save = () => saveBytes(base64, String(name ?? ""));
  return h(
    "p",
    {},
    `${size.toLocaleString("en")} bytes of ${visible(type || "unknown type", 100)} `,
    actionButton("Save", save),
  );
}

function saveBytes(base64, name) {
  const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
  const address = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const file =
    name
      .split(/[/\\]/)
      .pop()
      .replace(/[^\w.-]/g, "_") || "resource.bin";
  h("a", { href: address, download: file }).click();
  URL.revokeObjectURL(address);
}
