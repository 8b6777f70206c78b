// What the answers of tools hold, for the apps: what is for the view alone, and what others wrote in their texts.

import { resultText } from "./view.js";

const ANSWER_FENCE = /^<([a-z]+-[0-9a-f]{8})> (.*)$/m;

/** What a result has for its view alone; an empty object where it has nothing. */
export function answerView(result) {
  return result?._meta?.view ?? {};
}

/**
 * The text between the marks that a server puts around what others wrote, and what stands before and after them; null
 * where there are no marks. Nobody can know the word in a mark before, so the first line with one is the server's.
 */
export function unfence(text) {
  const opened = ANSWER_FENCE.exec(text);
  if (!opened) {
    return null;
  }
  const start = opened.index + opened[0].length + 1;
  const end = text.lastIndexOf(`\n</${opened[1]}>`);
  if (end < start - 1) {
    return null;
  }
  return {
    before: text.slice(0, opened.index),
    inside: text.slice(start, Math.max(end, start)),
    after: text.slice(end + opened[1].length + 4).trimStart(),
  };
}

/** The answer of a tool, or an Error with its text: one that the server gave, and one that the host gave. */
export async function callOrThrow(host, name, args) {
  const result = await host.callTool(name, args);
  if (result?.isError) {
    throw new Error(resultText(result) || `${name} failed`);
  }
  return result;
}
