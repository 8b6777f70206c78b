// The common parts of fields that consist of fields.
import { h, visible } from "./dom.js";
import { FormField } from "./form_field.js";

/** The common parts of groups: a frame with a title, and buttons. */
export class GroupField extends FormField {
  /** Puts a frame around `parts`, except for the outermost group of a form. */
  frame(...parts) {
    if (this.isRoot) {
      this.control = this.element = h("div", { class: "field field-root" }, ...parts, this.error);
    } else {
      const title = h("span", { text: visible(this.label, 300) });
      this.control = this.element = h("fieldset", { class: "field field-group" });
      const described = this.describe(this.element);
      this.element.removeAttribute("aria-required");
      this.element.append(
        h("legend", {}, h("span", { class: "field-head" }, title, ...this.marks())),
        described.shift() ?? "",
        ...parts,
        ...described,
      );
    }
    this.begin();
  }

  button(text, act, label = `${text} ${visible(this.label, 100)}`) {
    const made = h("button", { type: "button", text, "aria-label": label });
    made.addEventListener("click", () => {
      act(made);
      this.form.changed();
    });
    return made;
  }

  make(schema, spec) {
    return this.form.make(schema, { ...spec, depth: this.depth + 1 });
  }

  // A frame can't be focused; its first control can.
  focus() {
    this.element.querySelector("input, select, textarea, button")?.focus();
  }

  checkAll(fields, onlyGiven) {
    return [...super.check(onlyGiven), ...fields.flatMap((field) => field.check(onlyGiven))];
  }
}

/** Sets a property of `object`, even __proto__, like any other. */
export function define(object, name, value) {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
