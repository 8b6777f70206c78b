// Parts of tool results for the apps: the data for the view, and the texts by third parties.

import { resultText } from "./view.js";

const ANSWER_FENCE = /^<([a-z]+-[0-9a-f]{8})> (.*)$/m;

/** The data that a result has only for its view; an empty object if it has none. */
export function answerView(result) {
  return result?._meta?.view ?? {};
}

/**
 * The text between the marks that a server puts around third-party content, and the text before and after it; null if
 * there are no marks. The word in a mark can't be guessed, so the first line with a mark is the server's.
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

/** Returns the answer of a tool, or an Error with its text, which may come from the server or from the host. */
export async function callOrThrow(host, name, args) {
  const result = await host.callTool(name, args);
  if (result?.isError) {
    throw new Error(resultText(result) || `${name} failed`);
  }
  return result;
}
