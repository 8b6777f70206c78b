// The targets of links in Markdown, and where they end.

const MOST_URL = 4_000;

/** The form of a reference's name that is compared. */
export function referenceName(text) {
  return text.trim().replace(/\s+/g, " ").toLowerCase();
}

/**
 * The part of a link after `](`: a target, an optional title, and the closing parenthesis: `{url, end}`, or null.
 */
export function inlineTarget(text, from) {
  const angled = /[ \n]{0,20}<([^<>\n]{0,4000})>/y;
  angled.lastIndex = from;
  const found = angled.exec(text);
  let start = from;
  while (start < from + 20 && (text[start] === " " || text[start] === "\n")) start += 1;
  const [url, at] = found ? [found[1], angled.lastIndex] : withParentheses(text, start);
  const rest = /(?:[ \n]{1,20}(?:"[^"]{0,1000}"|'[^']{0,1000}'|\([^()]{0,1000}\)))?[ \n]{0,20}\)/y;
  rest.lastIndex = at;
  return rest.test(text) ? { url: url.replace(/\\([!-/:-@[-`{-~])/g, "$1"), end: rest.lastIndex } : null;
}

function withParentheses(text, from) {
  let depth = 0;
  let at = from;
  for (; at < text.length && at < from + MOST_URL && !/\s/.test(text[at]); at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "(" && (depth += 1) > 16) return ["", from];
    else if (text[at] === ")" && (depth -= 1) < 0) break;
  }
  return [text.slice(from, at), at];
}

/** The address in `text` at `at`, without the punctuation of the sentence around it. */
export function bareAddress(text, at) {
  const near = text.slice(at, at + MOST_URL);
  const end = near.search(/[\s<>[\]`]/);
  return withoutTail(end < 0 ? near : near.slice(0, end));
}

function withoutTail(url) {
  let end = url.length;
  let open = 0;
  for (const char of url) open += char === "(" ? 1 : char === ")" ? -1 : 0;
  for (; end > 0; end -= 1) {
    const last = url[end - 1];
    if (last === ")" && open < 0) open += 1;
    else if (!/[?!.,:;*_~'"\]`]/.test(last)) break;
  }
  return url.slice(0, end);
}
