// What both pages of SQLite have around what they show: the title with its facts, a state line, full screen.

import { clear, h, visible } from "../../web/dom.js";
import { resultText } from "../../web/view.js";

const MOST_TEXT = 20_000;

/** A line that says what goes on: `say(text)`, `fail(text)`, both with "" for nothing. */
export class StatusLine extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "status");
  }

  /** Tell something. */
  say(text) {
    this.classList.remove("error");
    this.textContent = visible(text, MOST_TEXT);
  }

  /** Tell that something failed. */
  fail(text) {
    this.classList.add("error");
    this.textContent = visible(text, MOST_TEXT);
  }
}

customElements.define("status-line", StatusLine);

/** A button that has the host show the page on the full screen, or not; hidden where the host can't. */
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

/** A result as text, for one that has no data of the form that is looked for: an error, or another server's. */
export function showText(place, result) {
  const text = visible(resultText(result) || "The result has no text.", MOST_TEXT);
  clear(place, h("pre", { class: result?.isError ? "error" : "", tabindex: "0" }, text));
}
