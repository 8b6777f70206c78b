// The entries of a directory, from the tools' answers: from the data for the view if present, otherwise from the
// text.

import { answerView, callOrThrow } from "../../common/web/answers.js";
import { resultText } from "../../common/web/view.js";

const KINDS = { FILE: "file", DIR: "directory", LINK: "link", OTHER: "other" };
const LINE = /^\[(FILE|DIR|LINK|OTHER)\] (.+?)(?: {2}([\d,]+) bytes)?$/;
const CUT = /\[truncated: [\d,]+ of ([\d,]+) entries shown; for more, cursor: (\S+)\]$/;
const WITH_URI = / \((file:\/\/\/[^\s()]*)\)$/;
const MOST_PAGES = 20;
const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** A size in readable units. */
export function sizeText(size) {
  if (typeof size !== "number") {
    return "";
  }
  let unit = 0;
  let amount = size;
  while (amount >= 1000 && unit < UNITS.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  return `${unit && amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${UNITS[unit]}`;
}

/** A time on the user's clock, from seconds since 1970 or an ISO date; "" if there is none. */
export function timeText(moment) {
  const date = new Date(typeof moment === "number" ? moment * 1000 : (moment ?? NaN));
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString();
}

/** A path as a result writes it: the path, and the URI after a path with escapes. */
export function splitTold(told) {
  const found = WITH_URI.exec(told);
  return found ? { path: told.slice(0, found.index), uri: found[1] } : { path: told, uri: null };
}

/** The path of a file: URI; the URI itself if the path is not valid text. */
export function uriPath(uri) {
  try {
    return decodeURIComponent(uri.replace(/^file:\/\//, ""));
  } catch {
    return uri;
  }
}

/** A path below a directory, in the same form as the directory's path. */
export function pathBelow(directory, relative) {
  const parts = directory.startsWith("file:") ? relative.split("/").map(encodeURIComponent) : [relative];
  return `${directory.replace(/\/$/, "")}/${parts.join("/")}`;
}

/** One directory as nodes of a tree, with all pages up to a limit, and whether there are more. */
export async function listDirectory(host, path, below = "") {
  const nodes = [];
  let cursor = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const args = cursor === null ? { path } : { path, cursor };
    const listing = listingOf(await callOrThrow(host, "list_directory_with_sizes", args), path, below);
    nodes.push(...listing.nodes);
    cursor = listing.next;
    if (cursor === null) {
      return { nodes, more: listing.more };
    }
  }
  return { nodes, more: true };
}

/** The nodes in one answer of list_directory_with_sizes, and the cursor of the next page or null. */
export function listingOf(result, path, below = "") {
  const text = resultText(result);
  const view = answerView(result);
  const told = text
    .split("\n")
    .map((line) => LINE.exec(line))
    .filter(Boolean)
    .map(entryOfLine);
  const given = view.entries ?? [];
  // The text contains more if the data for the view was cut earlier.
  const entries = told.length > given.length ? told : given;
  const cut = CUT.exec(text);
  const more = Boolean(view.more) && entries === given;
  return { nodes: entries.map((entry) => nodeOf(entry, path, below)), next: cut ? cut[2] : null, more };
}

/** The entries of a whole tree as nodes directly in its root, each named by its path in it. */
export function nest(entries, root) {
  const top = [];
  const known = new Map();
  for (const entry of entries) {
    const node = nodeOf(entry, root, "");
    known.set(node.key, node);
    const parent = known.get(node.key.slice(0, Math.max(node.key.lastIndexOf("/"), 0)));
    if (parent) {
      (parent.loaded ??= []).push(node);
    } else {
      top.push(node);
    }
  }
  return top;
}

function entryOfLine(found) {
  const size = found[3] === undefined ? null : Number(found[3].replaceAll(",", ""));
  return { path: found[2], kind: KINDS[found[1]], size, modified: null };
}

function nodeOf(entry, directory, below) {
  const told = splitTold(entry.path);
  const uri = entry.uri ?? told.uri;
  // A name with escapes is not the real name, which is in the URI.
  const relative = uri ? uriPath(uri).split("/").slice(-told.path.split("/").length).join("/") : told.path;
  return {
    key: below + relative,
    name: relative.slice(relative.lastIndexOf("/") + 1),
    path: uri ?? pathBelow(directory, told.path),
    kind: entry.kind === "symlink" ? "link" : entry.kind,
    size: entry.size ?? null,
    modified: entry.modified ?? null,
  };
}
