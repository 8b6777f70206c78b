// Small elements that all panels use.
import { h, copyText, visible } from "../../common/web/dom.js";

/** A remark in a muted style. */
export function remark(text) {
  return h("p", { class: "muted", text });
}

/** An error message. */
export function problem(error) {
  return h("p", { class: "error", role: "alert", text: visible(error?.message ?? error, 2_000) });
}

/** A button that calls `click`. */
export function actionButton(text, click, kind = "") {
  return h("button", { type: "button", class: kind, text, on: { click } });
}

/** A row of buttons and fields. */
export function toolbar(...parts) {
  return h("div", { class: "toolbar" }, ...parts);
}

/** A list next to the selected item. A narrow page shows one of them; `back` returns to the list. */
export function sides(list, detail, back) {
  const button = actionButton("Back to the list", back, "sides-back");
  return h("div", { class: "sides" }, list, h("div", { class: "sides-chosen" }, button, detail));
}

/** Copies `text`, and announces it. */
export async function copyAndSay(app, text) {
  app.say((await copyText(text)) ? "Copied" : "The browser refused to copy");
}

/** A section that folds; its contents are created when it is first opened. */
export function folded(summary, make, props = {}) {
  const part = h("details", props, h("summary", {}, ...[summary].flat()));
  part.addEventListener("toggle", () => part.append(make()), { once: true });
  return part;
}
