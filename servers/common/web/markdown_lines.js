// Lines of Markdown: the start and end of blocks.

/** A list item, and the indentation of its other lines. */
export const MARKDOWN_ITEM = /^( {0,3})([-+*]|\d{1,9}[.)])(?: {1,4}(?! )| (?= {4})|$)/;
/** The possible start of a code block. */
export const MARKDOWN_FENCE = /^( {0,3})(`{3,}|~{3,})([^\n]*)$/;
/** A heading marked with signs. */
export const MARKDOWN_HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;

/** The cells of a table row, as written. */
export function tableCells(line) {
  let bare = line.trim();
  if (bare.startsWith("|")) bare = bare.slice(1);
  const cells = [];
  let from = 0;
  for (let at = 0; at <= bare.length; at += 1) {
    if (bare[at] === "\\") at += 1;
    else if (at === bare.length || bare[at] === "|") {
      cells.push(bare.slice(from, at).trim().replaceAll("\\|", "|"));
      from = at + 1;
    }
  }
  if (from < bare.length) cells.push(bare.slice(from).trim());
  if (cells.length > 1 && cells.at(-1) === "" && bare.endsWith("|")) cells.pop();
  return cells;
}

/** The info string of a line that begins a code block; null for other lines. */
export function fenceOf(line) {
  const [, { length: indent }, mark, rest] = MARKDOWN_FENCE.exec(line);
  return mark[0] === "`" && rest.includes("`") ? null : { indent, mark, language: rest.trim().slice(0, 40) };
}

/** Returns true if a line is a horizontal rule. */
export function isRule(line) {
  if (!/^ {0,3}[-*_]/.test(line)) return false;
  const bare = line.replace(/[ \t]+/g, "");
  return bare.length >= 3 && isOnly(bare, bare[0]);
}

/** Returns true if `text` consists of one repeated character. */
export function isOnly(text, char) {
  for (let at = 0; at < text.length; at += 1) if (text[at] !== char) return false;
  return text.length > 0;
}

/** Returns true if a line ends a paragraph, or a lazy continuation of one. */
export function interruptsParagraph(line) {
  if (/^ {0,3}>/.test(line) || MARKDOWN_HEADING.test(line) || isRule(line)) return true;
  if (MARKDOWN_FENCE.test(line)) return fenceOf(line) !== null;
  const item = MARKDOWN_ITEM.exec(line);
  return item !== null && item[0].length < line.length && (!/\d/.test(item[2]) || parseInt(item[2], 10) === 1);
}

/** Returns true if a paragraph may continue after `line`. */
export function isParagraphText(line) {
  return (
    line !== undefined &&
    line.trim() !== "" &&
    !MARKDOWN_FENCE.test(line) &&
    !MARKDOWN_HEADING.test(line) &&
    !line.startsWith("    ")
  );
}

/** `line` with spaces instead of tabs in its indentation. */
export function withoutTabs(line) {
  if (!line.includes("\t")) return line;
  const lead = /^[ \t]*/.exec(line)[0];
  let wide = "";
  for (const char of lead) wide += char === "\t" ? " ".repeat(4 - (wide.length % 4)) : " ";
  return wide + line.slice(lead.length).replace(/^([-+*]|\d{1,9}[.)])\t/, "$1 ");
}
