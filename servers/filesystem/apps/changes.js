// What changes below a directory, asked for again and again: the server holds each question until something happens.

import { callOrThrow } from "../../common/web/answers.js";
import { resultText } from "../../common/web/view.js";
import { splitTold, uriPath } from "./entries.js";

const CHANGE = /^(\d{4}-\S+) (created|modified|deleted) (.+)$/;
const CHANGES_CURSOR = /\[cursor: (\S+)\]$/;
const WAIT_SECONDS = 25;
const PAUSES = [1_000, 5_000, 20_000];

/** The changes that an answer of the tool `changes` tells, with the cursor to go on from. */
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

/** Follows a directory: `onChanges(changes, overflow)` for what happened, `onState("live"|"paused"|"ended", why)`. */
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

  /** Begins, or goes on where it was stopped: what happened meanwhile is told, too. */
  start() {
    this.#wanted = true;
    if (!this.#running) {
      this.#running = true;
      void this.#run();
    }
  }

  /** Ends after the question that is open. */
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
