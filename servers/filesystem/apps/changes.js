// The changes below a directory, by long polling: the server answers each request when something happens.

import { callOrThrow } from "../../common/web/answers.js";
import { resultText } from "../../common/web/view.js";
import { splitTold, uriPath } from "./entries.js";

const CHANGE = /^(\d{4}-\S+) (created|modified|deleted) (.+)$/;
const CHANGES_CURSOR = /\[cursor: (\S+)\]$/;
const WAIT_SECONDS = 25;
const PAUSES = [1_000, 5_000, 20_000];

/** The changes in an answer of the tool `changes`, and the cursor to continue from. */
export function changesOf(result) {
  const text = resultText(result);
  const changes = text
    .split("\n")
    .map((line) => CHANGE.exec(line))
    .filter(Boolean)
    .map(changeOfLine);
  const overflow = /^\[overflow: /m.test(text);
  return { changes, cursor: CHANGES_CURSOR.exec(text)?.[1] ?? null, overflow };
}

/** Follows a directory: calls `onChanges(changes, overflow)`, and `onState("live"|"paused"|"ended", why)`. */
export class Follower {
  #host;
  #path;
  #cursor;
  #told;
  #wanted = false;
  #running = false;

  constructor(host, path, cursor, told) {
    this.#host = host;
    this.#path = path;
    this.#cursor = cursor ?? null;
    this.#told = told;
  }

  /** Starts, or continues after a stop; changes in the meantime are reported, too. */
  start() {
    this.#wanted = true;
    if (!this.#running) {
      this.#running = true;
      void this.#run();
    }
  }

  /** Stops after the request in progress. */
  stop() {
    this.#wanted = false;
    this.#told.onState("paused");
  }

  async #run() {
    let failed = 0;
    while (this.#wanted && failed < PAUSES.length) {
      try {
        await this.#ask();
        failed = 0;
      } catch (error) {
        failed += 1;
        this.#told.onState(failed < PAUSES.length ? "paused" : "ended", error.message);
        await new Promise((resolve) => setTimeout(resolve, PAUSES[failed - 1]));
      }
    }
    this.#wanted &&= failed < PAUSES.length;
    this.#running = false;
  }

  async #ask() {
    const place = { path: this.#path };
    const first = this.#cursor === null;
    const args = first ? place : { ...place, cursor: this.#cursor, wait: WAIT_SECONDS };
    this.#told.onState("live");
    const { changes, cursor, overflow } = changesOf(await callOrThrow(this.#host, "changes", args));
    if (cursor === null) {
      throw new Error("the answer has no cursor");
    }
    this.#cursor = cursor;
    if (changes.length > 0 || overflow) {
      await this.#told.onChanges(changes, overflow);
    }
  }
}

function changeOfLine(found) {
  const told = splitTold(found[3]);
  return { time: found[1], kind: found[2], path: told.uri ? uriPath(told.uri) : told.path };
}
