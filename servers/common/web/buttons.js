// Buttons that say what came of a click.

import { copyText, h } from "./dom.js";

const SAID_MS = 2_000;

/** A button that copies the text that `textOf()` gives, and says for a moment whether it did. */
export function copyButton(label, textOf) {
  const button = h("button", { type: "button", "aria-live": "polite", text: label });
  button.addEventListener("click", async () => {
    button.textContent = (await copyText(textOf())) ? "Copied" : "Not copied: the host does not allow it";
    setTimeout(() => {
      button.textContent = label;
    }, SAID_MS);
  });
  return button;
}
