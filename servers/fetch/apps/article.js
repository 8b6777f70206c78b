// A fetched page, from the tool's answer or from the page's resource.

import { answerView, unfence } from "../../common/web/answers.js";
import { resultText } from "../../common/web/view.js";

const FACT = /^(title|language|published|canonical): /;
const MOST_LINKS = 500;
const WEB = /^https?:\/\//i;

/** The page in a result of fetch; `args` are the tool's arguments, or null if the host did not send them. */
export function articleOf(result, args) {
  const view = answerView(result);
  const facts = result._meta ?? {};
  const image = (result.content ?? []).find((block) => block.type === "image") ?? null;
  const body = bodyOf(resultText(result), facts);
  return {
    ...body,
    url: view.url ?? facts.url ?? args?.url ?? "",
    title: view.title ?? facts.title ?? body.title,
    published: facts.published ?? "",
    resource: view.resource ?? null,
    format: args?.raw ? "raw" : (args?.format ?? "markdown"),
    kind: facts.kind ?? "html",
    start: args?.start_index ?? 0,
    image,
    outline: Array.isArray(view.outline) ? view.outline : [],
    links: linksOf(view.links),
  };
}

/** The same page with the text of its resource: all of it, or as much as fits in one answer. */
export function wholeArticle(article, read) {
  const contents = read?.contents?.find((one) => typeof one.text === "string");
  if (!contents) {
    throw new Error("The host returned no text for the whole page.");
  }
  const body = bodyOf(contents.text, contents._meta ?? {});
  return { ...article, ...body, title: article.title || body.title, format: "markdown", start: 0 };
}

/** The page with the next piece of its text appended. */
export function longerArticle(article, result) {
  const next = bodyOf(resultText(result), result._meta ?? {}, false);
  return { ...article, text: article.text + next.text, rest: next.rest, note: next.note };
}

/** Returns true if a link may be followed: it leads to the web. */
export function isWebLink(url) {
  return typeof url === "string" && WEB.test(url);
}

function bodyOf(answer, facts, withFacts = true) {
  const fenced = unfence(answer);
  const { title, text } = withFacts
    ? withoutFacts(fenced?.inside ?? answer)
    : { title: "", text: fenced?.inside ?? "" };
  const rest = facts.truncated ? (facts.nextIndex ?? null) : restOf(fenced?.after ?? "");
  return { text, title, rest, total: facts.length ?? null, note: notesOf(fenced?.before ?? "") };
}

/** The server puts facts about the page before its text, one per line, followed by an empty line. */
function withoutFacts(inside) {
  const lines = inside.split("\n");
  let count = 0;
  while (count < lines.length && FACT.test(lines[count])) {
    count += 1;
  }
  if (count === 0 || lines[count] !== "") {
    return { title: "", text: inside };
  }
  const title = lines.slice(0, count).find((line) => line.startsWith("title: "));
  return { title: title ? title.slice("title: ".length) : "", text: lines.slice(count + 1).join("\n") };
}

function restOf(after) {
  const found = /continue with start_index (\d+)/.exec(after);
  return found ? Number(found[1]) : null;
}

function notesOf(before) {
  const notes = before.split("\n").filter((line) => line.startsWith("note: "));
  return notes.map((line) => line.slice("note: ".length)).join("; ");
}

function linksOf(links) {
  const found = Array.isArray(links) ? links : [];
  return found.filter((link) => isWebLink(link?.url)).slice(0, MOST_LINKS);
}
