// <diff-view>: a unified diff with line numbers, colors and signs.
import { clear, count, h, visible } from "./dom.js";

const MOST_DIFF_ROWS_AT_ONCE = 1_000;
const DIFF_LINE_LENGTH = 2_000;
const DIFF_HUNK = /^@@ -(\d{1,15})(?:,(\d{1,15}))? \+(\d{1,15})(?:,(\d{1,15}))? @@(.*)$/;
const DIFF_SIGNS = { added: "+", removed: "−", same: "", note: "" };
const DIFF_SAID = { added: "added: ", removed: "removed: " };

/** `<diff-view>`: `show(text)` shows a unified diff of one or several files. */
export class DiffView extends HTMLElement {
  #rows = [];
  #body = null;
  #more = null;

  /** Shows the unified diff `text`; any other text is shown as lines. */
  show(text) {
    this.#rows = readDiff(String(text));
    this.#body = h("tbody", {});
    const added = this.#rows.filter((row) => row.kind === "added").length;
    const removed = this.#rows.filter((row) => row.kind === "removed").length;
    const summary = h(
      "p",
      { class: "diff-summary" },
      h("span", { class: "diff-plus", text: `+${count(added)}` }),
      " ",
      h("span", { class: "diff-minus", text: `−${count(removed)}` }),
      h("span", { class: "visually-hidden", text: ` ${count(added)} lines added, ${count(removed)} removed` }),
    );
    const head = h(
      "thead",
      { class: "visually-hidden" },
      h("tr", {}, ...["Before", "After", "Line"].map((text) => h("th", { scope: "col", text }))),
    );
    const table = h("table", { class: "diff" }, head, this.#body);
    this.#more = h("button", { type: "button", on: { click: () => this.#showMore() } });
    clear(
      this,
      summary,
      h("div", { class: "diff-box", tabindex: "0", role: "group", "aria-label": "Diff" }, table),
      this.#more,
    );
    this.#showMore();
  }

  #showMore() {
    const from = this.#body.childElementCount;
    this.#body.append(...this.#rows.slice(from, from + MOST_DIFF_ROWS_AT_ONCE).map(diffRow));
    const rest = this.#rows.length - from - MOST_DIFF_ROWS_AT_ONCE;
    this.#more.hidden = rest <= 0;
    this.#more.textContent = `Show more (${count(Math.max(rest, 0))} lines)`;
  }
}

function diffRow({ kind, before, after, text, changed }) {
  if (kind === "file" || kind === "hunk") {
    return h(
      "tr",
      { class: `diff-${kind}` },
      h("th", { colspan: 3, scope: "colgroup", text: visible(text, DIFF_LINE_LENGTH) }),
    );
  }
  const line = h("td", { class: "diff-line", "data-sign": DIFF_SIGNS[kind] });
  if (DIFF_SAID[kind]) line.append(h("span", { class: "visually-hidden", text: DIFF_SAID[kind] }));
  line.append(...diffLineParts(kind, text, changed));
  const number = (of) => h("td", { class: "diff-number", text: of ? String(of) : "" });
  return h("tr", { class: `diff-${kind}` }, number(before), number(after), line);
}

function diffLineParts(kind, text, changed) {
  if (!changed || text.length > DIFF_LINE_LENGTH) return [visible(text, DIFF_LINE_LENGTH)];
  const [from, to] = changed;
  const middle = h(kind === "added" ? "ins" : "del", { text: visible(text.slice(from, to)) });
  return [visible(text.slice(0, from)), middle, visible(text.slice(to))];
}

/** The rows of a unified diff: `{kind: "file"|"hunk"|"added"|"removed"|"same"|"note", before?, after?, text}`. */
export function readDiff(text) {
  const rows = [];
  const at = { before: 0, after: 0, leftBefore: 0, leftAfter: 0 };
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) rows.push(readDiffLine(line, at));
  markDiffChanges(rows);
  return rows;
}

// A hunk gives its number of lines, so a line "--- x" in it is a removed line, not the head of a file.
function readDiffLine(line, at) {
  if (at.leftBefore > 0 || at.leftAfter > 0) {
    const text = line.slice(1);
    if (line.startsWith("+")) return { kind: "added", after: takeDiffLine(at, "After", "after"), text };
    if (line.startsWith("-")) return { kind: "removed", before: takeDiffLine(at, "Before", "before"), text };
    if (line.startsWith(" ") || line === "") {
      return {
        kind: "same",
        before: takeDiffLine(at, "Before", "before"),
        after: takeDiffLine(at, "After", "after"),
        text,
      };
    }
  }
  if (line.startsWith("\\")) return { kind: "note", text: line.slice(1).trim() };
  const hunk = DIFF_HUNK.exec(line);
  if (hunk) {
    Object.assign(at, { before: Number(hunk[1]), after: Number(hunk[3]) });
    Object.assign(at, { leftBefore: Number(hunk[2] ?? 1), leftAfter: Number(hunk[4] ?? 1) });
    return { kind: "hunk", text: line };
  }
  const isHead =
    /^(?:--- |\+\+\+ |diff |index |Index: |rename |new file|deleted file|similarity |old mode|new mode|===)/.test(
      line,
    );
  return { kind: isHead ? "file" : "note", text: line };
}

function takeDiffLine(at, left, number) {
  at[`left${left}`] -= 1;
  at[number] += 1;
  return at[number] - 1;
}

// If as many lines are added as were removed just before, each pair shows where its lines differ.
function markDiffChanges(rows) {
  for (let from = 0; from < rows.length;) {
    let middle = from;
    while (rows[middle]?.kind === "removed") middle += 1;
    let to = middle;
    while (rows[to]?.kind === "added") to += 1;
    if (middle > from && to - middle === middle - from) {
      for (let at = 0; at < middle - from; at += 1) markDiffPair(rows[from + at], rows[middle + at]);
    }
    from = Math.max(to, from + 1);
  }
}

function markDiffPair(old, fresh) {
  const most = Math.min(old.text.length, fresh.text.length);
  if (most > DIFF_LINE_LENGTH) return;
  let start = 0;
  while (start < most && old.text[start] === fresh.text[start]) start += 1;
  let end = 0;
  while (end < most - start && old.text.at(-1 - end) === fresh.text.at(-1 - end)) end += 1;
  // If they have little in common, marks would only make them harder to read.
  if (start + end === 0 || start + end < most / 3) return;
  old.changed = [start, old.text.length - end];
  fresh.changed = [start, fresh.text.length - end];
}

customElements.define("diff-view", DiffView);
