// Buttons that report the result of a click.

import { copyText, h } from "./dom.js";

const SAID_MS = 2_000;

/** A button that copies `textOf()`, and shows for a moment whether it succeeded. */
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
