// Shows all of a value that is cut elsewhere, in a dialog.

import { cellText, clear, copyText, h, visible } from "./dom.js";

const MOST_SHOWN = 100_000;

/** Opens a dialog with `value`, up to a limit, and a button that copies all of it. Returns the dialog. */
export function showWhole(title, value) {
  const text = typeof value === "object" && value !== null ? indented(value) : cellText(value);
  const copy = h("button", { type: "button", text: "Copy" });
  copy.addEventListener("click", async () => {
    copy.textContent = (await copyText(text)) ? "Copied" : "Not allowed here";
  });
  const heading = h("h2", { id: "whole-title", text: visible(title, 200) });
  const props = { class: "whole", tabindex: "0", role: "region", "aria-labelledby": "whole-title" };
  const body = h("pre", { ...props, text: visible(text, MOST_SHOWN) });
  const dialog = h("dialog", { "aria-labelledby": "whole-title" });
  // Not a form with the method "dialog": the frame of an app may not allow forms.
  const close = h("button", { type: "button", class: "primary", text: "Close", on: { click: () => dialog.close() } });
  clear(dialog, heading, body, h("div", { class: "toolbar" }, copy, close));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
  return dialog;
}

function indented(value) {
  try {
    return JSON.stringify(value, null, 2);
  } catch {
    return cellText(value);
  }
}
