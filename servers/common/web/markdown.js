// Renders Markdown as elements, created one by one: HTML in the text is shown as text.
import { count, h, visible } from "./dom.js";
import { readBlocks } from "./markdown_blocks.js";
import { headingNames, headingsOf } from "./markdown_headings.js";
import { inlineText, readInline } from "./markdown_inline.js";
import { tableCells } from "./markdown_lines.js";

const MOST_MARKDOWN_NODES = 20_000;
const MOST_MARKDOWN_CODE = 100_000;
const MOST_MARKDOWN_TEXT = 100_000;
const DEEPEST_INLINE = 8;

/**
 * `text` as a document fragment. `onLink(url)` is called when a link is clicked; without it, links open in a new
 * window. `image(url, alt)` returns the element for an image, or null for a link. `base`: the URL that relative links
 * refer to. `prefix`: of the ids of headings, as in `outline`. `most`: maximum number of nodes.
 */
export function renderMarkdown(text, options = {}) {
  return new MarkdownWriter(options).write(String(text));
}

/**
 * The headings of a Markdown text, in the order and with the ids that they are rendered with: `[{level, text, id}]`.
 */
export function outline(text, { prefix = "section-" } = {}) {
  const { blocks, references } = readBlocks(String(text));
  const name = headingNames(prefix);
  return headingsOf(blocks).map(({ level, text: raw }) => {
    const shown = inlineText(readInline(raw, references));
    return { level, text: shown, id: name(shown) };
  });
}

class MarkdownWriter {
  constructor({ onLink = null, image = null, base = null, prefix = "section-", most = MOST_MARKDOWN_NODES }) {
    Object.assign(this, { onLink, image, base, prefix, left: most });
    this.name = headingNames(prefix);
    this.root = document.createDocumentFragment();
    this.ids = new Map();
    this.isCut = false;
  }

  write(text) {
    const { blocks, references, lines, read } = readBlocks(text);
    this.references = references;
    let shown = 0;
    for (; shown < blocks.length && this.left > 0; shown += 1) this.block(this.root, blocks[shown]);
    const line = this.isCut ? blocks[shown - 1].line : (blocks[shown]?.line ?? read);
    const place = `line ${count(line + 1)} of ${count(lines)}`;
    if (this.isCut) this.note(`Part of the block that begins on ${place}, and everything after it, is left out.`);
    else if (shown < blocks.length || read < lines) this.note(`The rest is left out, from ${place} on.`);
    return this.root;
  }

  note(text) {
    this.root.append(h("p", { class: "muted", text }));
  }

  hasRoom() {
    this.isCut ||= this.left <= 0;
    return !this.isCut;
  }

  /** Appends an element to `parent`, and returns it; null if there are too many. */
  make(parent, tag, props = {}) {
    if (!this.hasRoom()) return null;
    this.left -= 1;
    const element = h(tag, props);
    parent.append(element);
    return element;
  }

  block(parent, block) {
    if (block.kind === "list") this.list(parent, block);
    else if (block.kind === "quote") this.blocks(this.make(parent, "blockquote"), block.blocks);
    else if (block.kind === "table") this.table(parent, block);
    else if (block.kind === "code") this.code(parent, block);
    else if (block.kind === "rule") this.make(parent, "hr");
    else if (block.kind === "heading") this.heading(parent, block);
    else this.inline(this.make(parent, "p"), readInline(block.text, this.references));
  }

  blocks(parent, blocks) {
    for (const block of blocks) if (parent && this.hasRoom()) this.block(parent, block);
  }

  heading(parent, { level, text }) {
    const tokens = readInline(text, this.references);
    const id = this.name(inlineText(tokens));
    const element = this.make(parent, `h${level}`, { id });
    if (element) this.ids.set(id, element);
    this.inline(element, tokens);
  }

  code(parent, { text, language }) {
    const pre = this.make(parent, "pre", language ? { "data-language": visible(language, 40) } : {});
    if (pre) this.make(pre, "code")?.append(visible(text, MOST_MARKDOWN_CODE));
  }

  list(parent, { start, items, isTight }) {
    const isOrdered = start !== null;
    const list = this.make(parent, isOrdered ? "ol" : "ul", isOrdered && start !== 1 ? { start } : {});
    for (const { blocks, task } of items) {
      const item = list && this.make(list, "li", task === null ? {} : { class: "markdown-task" });
      if (!item) return;
      if (task !== null)
        item.append(
          h("input", { type: "checkbox", checked: task, disabled: true, "aria-label": task ? "done" : "to do" }),
          " ",
        );
      for (const block of blocks) {
        if (isTight && block.kind === "paragraph") this.inline(item, readInline(block.text, this.references));
        else this.block(item, block);
      }
    }
  }

  table(parent, { align, head, rows }) {
    const box = this.make(parent, "div", {
      class: "markdown-table",
      tabindex: "0",
      role: "group",
      "aria-label": "Table",
    });
    const table = box && this.make(box, "table");
    const top = table && this.make(table, "thead");
    if (top) this.row(top, "th", tableCells(head), align);
    const body = table && this.make(table, "tbody");
    for (const line of rows) {
      if (!body || !this.hasRoom()) return;
      this.row(body, "td", tableCells(line), align);
    }
  }

  row(parent, tag, cells, align) {
    const row = this.make(parent, "tr");
    for (const [at, side] of align.entries()) {
      const cell = row && this.make(row, tag, side === "start" ? {} : { "data-align": side });
      if (!cell) return;
      this.inline(cell, readInline(cells[at] ?? "", this.references));
    }
  }

  // Tokens open and close elements; elements beyond the maximum depth are flattened.
  inline(parent, tokens) {
    const open = [];
    let inLink = null;
    for (const token of tokens) {
      if (!parent || !this.hasRoom()) return;
      const into = open.at(-1)?.element ?? parent;
      if (token.open) {
        const isFlat = open.length >= DEEPEST_INLINE || (token.open === "a" && inLink);
        const element = isFlat ? into : token.open === "a" ? this.link(into, token.url) : this.make(into, token.open);
        if (token.open === "a" && !isFlat) inLink = element;
        open.push({ element: element ?? into, isLink: token.open === "a" && !isFlat });
      } else if (token.close) {
        if (open.pop()?.isLink) inLink = null;
      } else this.leaf(into, token, inLink);
    }
  }

  leaf(into, token, inLink) {
    this.left -= 1;
    if (token.line) into.append(h("br"));
    else if (token.code !== undefined) into.append(h("code", { text: visible(token.code, MOST_MARKDOWN_TEXT) }));
    else if (token.image !== undefined) this.picture(into, token, inLink);
    else into.append(visible(token.text, MOST_MARKDOWN_TEXT));
  }

  picture(into, { image: url, alt }, inLink) {
    const target = this.target(url);
    const made = target && this.image ? this.image(target, alt) : null;
    const text = visible(alt || "image", MOST_MARKDOWN_TEXT);
    if (made) into.append(made);
    else if (inLink) into.append(text);
    else this.link(into, url)?.append(text);
  }

  /** A link to `url`; if it must not be followed, an element that shows the address. */
  link(into, url) {
    const local = url.startsWith("#") ? url.slice(1) : null;
    const target = local === null ? this.target(url) : null;
    if (local === null && !target)
      return this.make(into, "span", { class: "markdown-dead", title: visible(url, 500) });
    const away = { href: target, target: "_blank", rel: "noopener noreferrer", title: visible(target ?? "", 500) };
    const link = this.make(into, "a", local === null ? away : { href: "#" });
    link?.addEventListener("click", (event) => {
      if (local !== null || this.onLink) event.preventDefault();
      if (local !== null) this.jump(local);
      else this.onLink?.(target);
    });
    return link;
  }

  target(url) {
    try {
      const target = new URL(url, this.base ?? undefined);
      return target.protocol === "http:" || target.protocol === "https:" ? target.href : null;
    } catch {
      return null;
    }
  }

  jump(local) {
    const heading = this.ids.get(this.prefix + local.toLowerCase()) ?? this.ids.get(local);
    if (!heading) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    heading.scrollIntoView({ block: "start" });
  }
}
