// The frame of both SQLite pages: the title with its facts, a status line, and full screen.

import { clear, h, visible } from "../../web/dom.js";
import { resultText } from "../../web/view.js";

const MOST_TEXT = 20_000;

/** A status line: `say(text)` and `fail(text)`, both with "" for nothing. */
export class StatusLine extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "status");
  }

  /** Shows a message. */
  say(text) {
    this.classList.remove("error");
    this.textContent = visible(text, MOST_TEXT);
  }

  /** Shows an error. */
  fail(text) {
    this.classList.add("error");
    this.textContent = visible(text, MOST_TEXT);
  }
}

customElements.define("status-line", StatusLine);

/** A button that toggles full screen in the host; hidden if the host does not support it. */
export function makeDisplayButton() {
  let host = null;
  const button = h("button", { type: "button", class: "plain", hidden: true });
  button.update = (connected) => {
    host = connected;
    const full = host.context.displayMode === "fullscreen";
    button.hidden = !host.canDisplay(full ? "inline" : "fullscreen");
    button.textContent = full ? "Leave full screen" : "Full screen";
  };
  button.addEventListener("click", async () => {
    await host.display(host.context.displayMode === "fullscreen" ? "inline" : "fullscreen").catch(() => null);
    button.update(host);
  });
  return button;
}

/** A result as text, if it has no data of the expected form: an error, or another server's result. */
export function showText(place, result) {
  const text = visible(resultText(result) || "The result has no text.", MOST_TEXT);
  clear(place, h("pre", { class: result?.isError ? "error" : "", tabindex: "0" }, text));
}
