// The inline parts of a line of Markdown: emphasis, code, links. The line is read once from left to right, without
// recursion or backtracking, so that the time is proportional to its length.
import { bareAddress, inlineTarget, referenceName } from "./markdown_links.js";
import { RunList, settleRun } from "./markdown_runs.js";

const MOST_INLINE = 100_000;
const SPECIAL_INLINE = /[\\`*_~[\]!<&\n]|\bhttps?:\/\/|\bwww\.(?=\w)/gi;
const ENTITY = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,8}));/iy;
const ENTITIES = new Map([
  ..."amp& lt< gt> quot\" apos' copy© reg® trade™ hellip… mdash— ndash– lsquo‘ rsquo’ ldquo“ rdquo” laquo« raquo»"
    .split(" ")
    .map((entity) => [entity.slice(0, -1), entity.at(-1)]),
  ["nbsp", "\u00a0"],
]);

/**
 * The tokens of `text`: `{text}`, `{code}`, `{open: tag, url?}`, `{close: tag}`, `{image, alt}` and `{line: true}`
 * for a hard line break. `references` are the targets of `[text][name]`, by name.
 */
export function readInline(text, references = new Map()) {
  const reader = new InlineReader(text.slice(0, MOST_INLINE), references);
  const tokens = reader.read();
  const left = text.length - MOST_INLINE;
  return left > 0 ? [...tokens, { text: `… (${left.toLocaleString("en-US")} more characters)` }] : tokens;
}

/** The text of tokens, without formatting. */
export function inlineText(tokens) {
  return tokens.map((token) => token.text ?? token.code ?? token.alt ?? (token.line ? " " : "")).join("");
}

class InlineReader {
  constructor(text, references) {
    this.text = text;
    this.at = 0;
    this.tokens = [];
    this.references = references;
    this.runs = new RunList();
    // The open brackets.
    this.brackets = [];
    // Brackets below this position surround a link, and can't be links themselves.
    this.dead = 0;
    this.ticks = null;
  }

  read() {
    const { text } = this;
    while (this.at < text.length) {
      SPECIAL_INLINE.lastIndex = this.at;
      const found = SPECIAL_INLINE.exec(text);
      const to = found ? found.index : text.length;
      if (to > this.at) this.say(text.slice(this.at, to));
      this.at = to;
      if (found) this.special(found[0]);
    }
    this.runs.match();
    return this.tokens.flatMap(settleRun);
  }

  say(text) {
    const last = this.tokens.at(-1);
    if (last?.text !== undefined) last.text += text;
    else this.tokens.push({ text });
  }

  special(found) {
    const char = found[0];
    if (found.length > 1) this.bareLink();
    else if (char === "\\") this.escape();
    else if (char === "`") this.code();
    else if (char === "[") this.openBracket(1);
    else if (char === "]") this.closeBracket();
    else if (char === "!") this.bang();
    else if (char === "<") this.angle();
    else if (char === "&") this.entity();
    else if (char === "\n") this.lineEnd();
    else this.run(char);
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === "\n") this.tokens.push({ line: true });
    else this.say(next !== undefined && isAsciiPunctuation(next) ? next : `\\${next ?? ""}`);
    this.at += 2;
  }

  lineEnd() {
    const last = this.tokens.at(-1);
    const hard = last?.text?.endsWith("  ");
    if (last?.text) last.text = last.text.trimEnd();
    this.at += 1;
    while (this.text[this.at] === " ") this.at += 1;
    if (hard) this.tokens.push({ line: true });
    else this.say("\n");
  }

  // The positions of runs of backticks are indexed by length once: each unclosed run would search the rest again.
  code() {
    this.ticks ??= tickRuns(this.text);
    let size = 1;
    while (this.text[this.at + size] === "`") size += 1;
    const ends = this.ticks.get(size) ?? [];
    while (ends.length && ends.at(-1) < this.at + size) ends.pop();
    const end = ends.at(-1);
    if (end === undefined) {
      this.say("`".repeat(size));
      this.at += size;
      return;
    }
    const inner = this.text.slice(this.at + size, end).replaceAll("\n", " ");
    const padded = inner.length > 2 && inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "";
    this.tokens.push({ code: padded ? inner.slice(1, -1) : inner });
    this.at = end + size;
  }

  bang() {
    if (this.text[this.at + 1] === "[") this.openBracket(2);
    else {
      this.say("!");
      this.at += 1;
    }
  }

  openBracket(size) {
    this.brackets.push({ token: this.tokens.length, image: size === 2, bottom: this.runs.top, from: this.at + size });
    this.tokens.push({ text: size === 2 ? "![" : "[" });
    // The following text is not joined to the bracket, which may become the start of a link.
    this.tokens.push({ text: "" });
    this.at += size;
  }

  closeBracket() {
    const opened = this.brackets.pop();
    const isDead = opened && !opened.image && this.brackets.length < this.dead;
    this.dead = Math.min(this.dead, this.brackets.length);
    const found = opened && !isDead ? this.target(opened) : null;
    if (!found) {
      this.say("]");
      this.at += 1;
      return;
    }
    this.runs.match(opened.bottom);
    if (opened.image) {
      const alt = inlineText(this.tokens.splice(opened.token).slice(1).flatMap(settleRun));
      this.tokens.push({ image: found.url, alt });
    } else {
      this.tokens[opened.token] = { open: "a", url: found.url };
      this.tokens.push({ close: "a" });
      this.dead = this.brackets.length;
    }
    this.at = found.end;
  }

  target(opened) {
    const inline = this.text[this.at + 1] === "(" ? inlineTarget(this.text, this.at + 2) : null;
    if (inline) return inline;
    let name = this.text.slice(opened.from, Math.min(this.at, opened.from + 201));
    let end = this.at + 1;
    if (this.text[end] === "[") {
      const close = this.text.slice(end + 1, end + 202).indexOf("]");
      if (close > 0) name = this.text.slice(end + 1, end + 1 + close);
      if (close >= 0) end += close + 2;
    }
    const url = name.length <= 200 ? this.references.get(referenceName(name)) : undefined;
    return url === undefined ? null : { url, end };
  }

  angle() {
    const inside = /<([a-z][a-z\d+.-]{1,31}:[^\s<>]{0,4000}|[\w.+-]{1,64}@[\w.-]{1,200})>/iy;
    inside.lastIndex = this.at;
    const found = inside.exec(this.text);
    if (!found) {
      this.say("<");
      this.at += 1;
      return;
    }
    this.tokens.push({ open: "a", url: found[1] }, { text: found[1] }, { close: "a" });
    this.at += found[0].length;
  }

  bareLink() {
    const shown = bareAddress(this.text, this.at);
    const url = /^www\./i.test(shown) ? `https://${shown}` : shown;
    this.tokens.push({ open: "a", url }, { text: shown }, { close: "a" });
    this.at += shown.length;
  }

  entity() {
    ENTITY.lastIndex = this.at;
    const found = ENTITY.exec(this.text);
    const code = found && (found[1] ? Number(found[1]) : parseInt(found[2] ?? "", 16));
    const char =
      found && (found[3] ? ENTITIES.get(found[3]) : code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : null);
    this.say(char || "&");
    this.at += char ? found[0].length : 1;
  }

  run(char) {
    const from = this.at;
    while (this.text[this.at] === char) this.at += 1;
    const size = this.at - from;
    if (char === "~" && size > 2) {
      this.say(char.repeat(size));
      return;
    }
    this.tokens.push(this.runs.add(char, this.text, from, this.at));
  }
}

function tickRuns(text) {
  const runs = new Map();
  for (const found of text.matchAll(/`+/g)) {
    const size = found[0].length;
    if (!runs.has(size)) runs.set(size, []);
    runs.get(size).push(found.index);
  }
  for (const starts of runs.values()) starts.reverse();
  return runs;
}

function isAsciiPunctuation(char) {
  return /[!-/:-@[-`{-~]/.test(char);
}
