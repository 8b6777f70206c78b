// Small parts that all panels have.
import { h, copyText, visible } from "../../common/web/dom.js";

/** A remark that stands back. */
export function remark(text) {
  return h("p", { class: "muted", text });
}

/** What went wrong. */
export function problem(error) {
  return h("p", { class: "error", role: "alert", text: visible(error?.message ?? error, 2_000) });
}

/** A button that does `click`. */
export function actionButton(text, click, kind = "") {
  return h("button", { type: "button", class: kind, text, on: { click } });
}

/** A row of buttons and fields. */
export function toolbar(...parts) {
  return h("div", { class: "toolbar" }, ...parts);
}

/** Copies `text`, and says so. */
export async function copyAndSay(app, text) {
  app.say((await copyText(text)) ? "Copied" : "The browser refused to copy");
}

/** Something that folds, and is made when it is first opened. */
export function folded(summary, make, props = {}) {
  const part = h("details", props, h("summary", {}, ...[summary].flat()));
  part.addEventListener("toggle", () => part.append(make()), { once: true });
  return part;
}
