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

/** A list beside what is chosen of it. A narrow page shows one of them; `back` leads to the list again. */
export function sides(list, detail, back) {
  const button = actionButton("Back to the list", back, "sides-back");
  return h("div", { class: "sides" }, list, h("div", { class: "sides-chosen" }, button, detail));
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
