// Fields with one control: numbers, choices and booleans.
import { h, visible } from "./dom.js";
import { readNumber } from "./form_checks.js";
import { FormField } from "./form_field.js";
import { choiceText, sameJson, schemaChoices } from "./form_schema.js";

const MOST_OPTIONS = 500;

/** A number, typed as text, so that nothing is rounded or lost before it is checked. */
export class NumberField extends FormField {
  constructor(spec) {
    super(spec);
    const inputmode = spec.schema.type === "integer" && spec.schema.minimum >= 0 ? "numeric" : "text";
    this.build(h("input", { type: "text", inputmode, autocomplete: "off", placeholder: this.placeholder() }));
  }

  note() {
    return this.schema.type ?? "number";
  }

  put(value) {
    if (typeof value === "number") this.control.value = String(value);
  }

  take() {
    return this.control.value.trim() === "" ? undefined : readNumber(this.control.value, this.schema).value;
  }

  problem() {
    return this.control.value.trim() === "" ? null : readNumber(this.control.value, this.schema).problem;
  }
}

/** One of several values. If there are very many, the user types one, with suggestions. */
export class ChoiceField extends FormField {
  constructor(spec) {
    super(spec);
    this.choices = schemaChoices(spec.schema) ?? [true, false].map((value) => ({ value, title: String(value) }));
    if (this.choices.length > MOST_OPTIONS) this.buildTyped();
    else this.buildSelect();
    if (spec.required && !spec.nullable && this.choices.length === 1) this.put(this.choices[0].value);
  }

  buildSelect() {
    const { default: given } = this.schema;
    const standard =
      given === undefined || given === null ? null : this.choices.find((one) => sameJson(one.value, given));
    const none = standard ? `default: ${visible(standard.title, 100)}` : this.required ? "choose…" : "—";
    const options = this.choices.map(({ title }, at) =>
      h("option", { value: String(at), text: visible(title, 200) }),
    );
    this.build(h("select", {}, h("option", { value: "", text: none }), ...options));
  }

  buildTyped() {
    const options = this.choices
      .slice(0, MOST_OPTIONS)
      .map(({ title }) => h("option", { value: visible(title, 200) }));
    const list = h("datalist", { id: `${this.id}-list` }, ...options);
    this.build(
      h("input", { type: "text", list: list.id, autocomplete: "off", placeholder: this.placeholder() }),
      list,
    );
  }

  put(value) {
    const at = this.choices.findIndex((choice) => sameJson(choice.value, value));
    if (at < 0) return;
    this.control.value = this.control.tagName === "SELECT" ? String(at) : choiceText(this.choices[at].title);
  }

  take() {
    const { value, tagName } = this.control;
    if (value === "") return undefined;
    if (tagName === "SELECT") return this.choices[Number(value)]?.value;
    return this.choices.find(({ title }) => title === value)?.value;
  }

  problem() {
    return this.control.value !== "" && this.take() === undefined ? "This is not one of its values." : null;
  }
}

/** A boolean that always has a value: it is required, or has a default. */
export class CheckField extends FormField {
  constructor(spec) {
    super(spec);
    this.isTouched = spec.required;
    this.control = h("input", { type: "checkbox", id: this.id, checked: spec.schema.default === true });
    this.control.addEventListener("input", () => (this.isTouched = true));
    const described = this.describe(this.control);
    const label = h("label", { for: this.id, text: visible(this.label, 300) });
    this.element = h(
      "div",
      { class: "field field-check" },
      h("div", { class: "field-head" }, this.control, label, ...this.marks()),
      ...described,
    );
    this.begin();
  }

  put(value) {
    if (typeof value !== "boolean") return;
    this.control.checked = value;
    this.isTouched = true;
  }

  take() {
    return this.isTouched ? this.control.checked : undefined;
  }
}
