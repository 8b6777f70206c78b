// The blocks of a Markdown text: paragraphs, headings, lists, quotes, code, tables. Each line is examined once for
// each block around it, and the nesting of blocks is limited.
import { MARKDOWN_FENCE, MARKDOWN_HEADING, MARKDOWN_ITEM, fenceOf, isOnly, isRule } from "./markdown_lines.js";
import { interruptsParagraph, isParagraphText, tableCells, withoutTabs } from "./markdown_lines.js";
import { referenceName } from "./markdown_links.js";

const DEEPEST_BLOCK = 12;
const MOST_BLOCKS = 20_000;
const TABLE_DELIMITERS = /^[ \t|:-]+$/;
const MARKDOWN_REFERENCE =
  /^ {0,3}\[(?!\^)([^[\]]{1,200})\]:[ \t]{0,20}<?([^\s<>]{1,4000})>?(?:[ \t]{1,20}["'(].{0,1000}["')])?[ \t]{0,20}$/;

/**
 * The blocks of `text`, with the targets of its references, the number of its lines, and the number of lines read
 * before there were too many blocks: `{blocks, references, lines, read}`. A block has its `kind` and first `line`.
 */
export function readBlocks(text) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n").map(withoutTabs);
  const references = new Map();
  const reader = new BlockReader(lines, { references, left: MOST_BLOCKS }, 0);
  return { blocks: reader.read(), references, lines: lines.length, read: reader.at };
}

class BlockReader {
  constructor(lines, shared, depth) {
    this.lines = lines;
    this.shared = shared;
    this.depth = depth;
    this.at = 0;
    this.blocks = [];
  }

  read() {
    while (this.at < this.lines.length && this.shared.left > 0) {
      const line = this.at;
      const block = this.lines[line].trim() === "" ? this.skip() : this.block(this.lines[line]);
      if (!block) continue;
      this.shared.left -= 1;
      this.blocks.push({ ...block, line });
    }
    return this.blocks;
  }

  skip() {
    this.at += 1;
    return null;
  }

  block(line) {
    if (line.startsWith("    ")) return this.indented();
    if (MARKDOWN_FENCE.test(line) && fenceOf(line)) return this.fenced(fenceOf(line));
    if (MARKDOWN_HEADING.test(line)) return this.heading(line);
    if (isRule(line)) return this.skip() ?? { kind: "rule" };
    const isDeep = this.depth >= DEEPEST_BLOCK;
    if (!isDeep && /^ {0,3}>/.test(line)) return this.quote();
    if (!isDeep && MARKDOWN_ITEM.test(line)) return this.list(MARKDOWN_ITEM.exec(line));
    if (this.isTable()) return this.table();
    const reference = MARKDOWN_REFERENCE.exec(line);
    if (reference) {
      const name = referenceName(reference[1]);
      if (!this.shared.references.has(name)) this.shared.references.set(name, reference[2]);
      return this.skip();
    }
    return this.paragraph();
  }

  indented() {
    const lines = [];
    for (; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      if (!line.startsWith("    ") && line.trim() !== "") break;
      lines.push(line.slice(4));
    }
    while (lines.at(-1) === "") lines.pop();
    return { kind: "code", text: lines.join("\n"), language: "" };
  }

  fenced({ indent, mark, language }) {
    const lines = [];
    const isEnd = (line) => line.startsWith(mark[0]) && line.length >= mark.length && isOnly(line, mark[0]);
    for (this.at += 1; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      if (/^ {0,3}[`~]/.test(line) && isEnd(line.trim())) break;
      lines.push(line.slice(Math.min(indent, line.length - line.trimStart().length)));
    }
    this.at += 1;
    return { kind: "code", text: lines.join("\n"), language };
  }

  heading(line) {
    this.at += 1;
    const [head, { length: level }] = MARKDOWN_HEADING.exec(line);
    let text = line.slice(head.length).trim();
    let end = text.length;
    while (text[end - 1] === "#") end -= 1;
    if (end < text.length && (end === 0 || text[end - 1] === " ")) text = text.slice(0, end).trimEnd();
    return { kind: "heading", level, text };
  }

  quote() {
    const lines = [];
    for (; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      const marked = /^ {0,3}> ?/.exec(line);
      if (marked) lines.push(line.slice(marked[0].length));
      else if (line.trim() !== "" && isParagraphText(lines.at(-1)) && !interruptsParagraph(line)) lines.push(line);
      else break;
    }
    return { kind: "quote", blocks: this.within(lines) };
  }

  list(first) {
    const mark = first[2].at(-1);
    const items = [];
    let isLoose = false;
    while (this.shared.left > 0) {
      const found = this.at < this.lines.length ? MARKDOWN_ITEM.exec(this.lines[this.at]) : null;
      if (!found || found[2].at(-1) !== mark || isRule(this.lines[this.at])) break;
      const lines = this.item(found);
      const endsBlank = lines.length > 1 && lines.at(-1) === "";
      while (lines.length > 1 && lines.at(-1) === "") lines.pop();
      const task = /^\[([ xX])\] /.exec(lines[0]);
      if (task) lines[0] = lines[0].slice(4);
      const blocks = this.within(lines);
      const goesOn = this.at < this.lines.length && MARKDOWN_ITEM.exec(this.lines[this.at])?.[2].at(-1) === mark;
      isLoose ||= (endsBlank && goesOn) || (blocks.length > 1 && lines.includes("") && !blocks.every(isListOrFirst));
      items.push({ blocks, task: task ? task[1] !== " " : null });
    }
    const start = /\d/.test(first[2]) ? parseInt(first[2], 10) : null;
    return { kind: "list", start, items, isTight: !isLoose };
  }

  /** The lines of one item, without their indentation. */
  item(found) {
    const indent = found[0].length + (found[0].endsWith(" ") ? 0 : 1);
    const lines = [this.lines[this.at].slice(found[0].length)];
    for (this.at += 1; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      if (line.trim() === "") lines.push("");
      else if (line.startsWith(" ".repeat(indent))) lines.push(line.slice(indent));
      else if (isParagraphText(lines.at(-1)) && !interruptsParagraph(line) && !MARKDOWN_ITEM.test(line))
        lines.push(line.trimStart());
      else break;
      // An item may begin with one blank line at most.
      if (lines.length === 2 && lines[0] === "" && lines[1] === "") break;
    }
    return lines;
  }

  within(lines) {
    return new BlockReader(lines, this.shared, this.depth + 1).read();
  }

  isTable() {
    const [head, next] = [this.lines[this.at], this.lines[this.at + 1]];
    if (!head.includes("|") || !next?.includes("-") || !TABLE_DELIMITERS.test(next)) return false;
    const cells = tableCells(next);
    return cells.every((cell) => /^:?-+:?$/.test(cell)) && cells.length === tableCells(head).length;
  }

  table() {
    const head = this.lines[this.at];
    const align = tableCells(this.lines[this.at + 1]).map((cell) =>
      cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "end") : "start",
    );
    const rows = [];
    for (this.at += 2; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      if (line.trim() === "" || interruptsParagraph(line)) break;
      rows.push(line);
    }
    return { kind: "table", align, head, rows };
  }

  paragraph() {
    const lines = [];
    for (; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      if (line.trim() === "") break;
      const underlined = lines.length && /^ {0,3}(?:=|-)/.test(line) ? line.trim() : "";
      if (underlined && (isOnly(underlined, "=") || isOnly(underlined, "-"))) {
        this.at += 1;
        return { kind: "heading", level: underlined[0] === "=" ? 1 : 2, text: lines.join("\n").trim() };
      }
      if (lines.length && (interruptsParagraph(line) || this.isTable())) break;
      lines.push(line.trimStart());
    }
    return { kind: "paragraph", text: lines.join("\n").trimEnd() };
  }
}

function isListOrFirst(block, at) {
  return at === 0 || block.kind === "list";
}
