// The common parts of all fields of a form: a label, a hint, an error, and null.
import { h, visible } from "./dom.js";
import { boundsText, readJson } from "./form_checks.js";
import { choiceText } from "./form_schema.js";

const HINT_LENGTH = 2_000;
const FIELD_OF = new WeakMap();
const FIELD_NUMBERS = { last: 0 };

/** The field whose row contains an element, or null. */
export function fieldAround(element) {
  const row = element.closest?.(".field");
  return row ? (FIELD_OF.get(row) ?? null) : null;
}

/**
 * One value of a form. A kind of field defines how a value gets into its control (`put`), out of it (`take`:
 * undefined if there is none), and its errors (`problem`). `spec`: `{name, label, schema, required, nullable,
 * form}`.
 */
export class FormField {
  constructor(spec) {
    Object.assign(this, spec);
    FIELD_NUMBERS.last += 1;
    this.id = `field-${FIELD_NUMBERS.last}`;
    this.error = h("p", { class: "error field-error", id: `${this.id}-error`, hidden: true });
    this.isNull = false;
  }

  /** Puts the row around `control`, the element that the label belongs to. */
  build(control, ...after) {
    this.control = control;
    control.id = this.id;
    const described = this.describe(control);
    const label = h("label", { for: this.id, text: visible(this.label, 300) });
    const head = h("div", { class: "field-head" }, label, ...this.marks());
    // The label of an item follows from its position and its surroundings.
    if (this.isItem) head.classList.add("visually-hidden");
    this.element = h("div", { class: "field" }, head, control, ...after, ...described);
    this.begin();
  }

  /** The hint and the error, which describe `control`. */
  describe(control) {
    const text = this.schema.description ? visible(this.schema.description, HINT_LENGTH) : "";
    const hint = text ? h("p", { class: "field-hint", id: `${this.id}-hint`, text }) : null;
    control.setAttribute("aria-describedby", `${hint ? `${hint.id} ` : ""}${this.error.id}`);
    if (this.required) control.setAttribute("aria-required", "true");
    return [hint, this.error];
  }

  marks() {
    const notes = [this.note(), boundsText(this.schema)].filter(Boolean).join(", ");
    const marks = [notes ? h("span", { class: "field-note", text: visible(notes, 200) }) : null];
    if (this.required && !this.isItem)
      marks.unshift(h("span", { class: "field-required", title: "required", text: "*", "aria-hidden": true }));
    if (this.schema.deprecated) marks.push(h("span", { class: "badge warn", text: "deprecated" }));
    // If there is a default, omitting the value and entering null are different.
    if (this.nullable && this.schema.default !== undefined && this.schema.default !== null)
      marks.push(this.nullButton());
    return marks;
  }

  nullButton() {
    this.nulls = h("button", { type: "button", class: "plain field-null", "aria-pressed": "false", text: "null" });
    this.nulls.setAttribute("aria-label", `Send null for ${visible(this.label, 100)}`);
    this.nulls.addEventListener("click", () => {
      this.setNull(!this.isNull);
      this.form.changed();
    });
    return this.nulls;
  }

  /** Registers the row, listens to input, and fills in a default if the form does so. */
  begin() {
    FIELD_OF.set(this.element, this);
    this.element.addEventListener("input", () => this.isNull && this.setNull(false));
    const given = this.schema.default;
    if (given !== undefined && given !== null && (this.form.prefill || this.required)) this.put(given);
  }

  setNull(isNull) {
    this.isNull = isNull;
    this.nulls?.setAttribute("aria-pressed", String(isNull));
    this.element.classList.toggle("field-is-null", isNull);
  }

  /** Its value; undefined if there is none. */
  read() {
    if (this.isNull) return null;
    const value = this.take();
    return value === undefined && this.required && this.nullable ? null : value;
  }

  write(value) {
    if (value === null && this.nullable) this.setNull(true);
    else this.put(value);
  }

  /** Shows the errors, and returns them as `[{message, field}]`. With `onlyGiven`, missing ones are left out. */
  check(onlyGiven = false) {
    const message = this.isNull ? null : this.wrong(onlyGiven);
    this.tell(message);
    return message ? [{ message: `${visible(this.label, 100)}: ${message}`, field: this }] : [];
  }

  wrong(onlyGiven) {
    const problem = this.problem();
    if (problem) return problem;
    return !onlyGiven && this.required && !this.nullable && this.take() === undefined ? "A value is required." : null;
  }

  tell(message) {
    this.error.textContent = message ? visible(message, 500) : "";
    this.error.hidden = !message;
    // A folded field can't be seen or focused.
    if (message) this.element.closest("details")?.setAttribute("open", "");
    if (message) this.control.setAttribute("aria-invalid", "true");
    else this.control.removeAttribute("aria-invalid");
  }

  focus() {
    this.control.focus();
  }

  note() {
    return "";
  }

  problem() {
    return null;
  }

  /** The placeholder of an empty control: the server's default, or an example. */
  placeholder() {
    const { default: given, examples } = this.schema;
    if (given !== undefined && given !== null && given !== "")
      return visible(choiceText(given), 100).replaceAll("\n", " ");
    return examples?.length ? `e.g. ${visible(choiceText(examples[0]), 100)}`.replaceAll("\n", " ") : "";
  }
}

/** A value as JSON text, for schemas that no other field supports. */
export class JsonField extends FormField {
  constructor(spec) {
    super(spec);
    this.build(h("textarea", { rows: 3, spellcheck: "false", placeholder: this.placeholder() }));
  }

  note() {
    return "JSON";
  }

  put(value) {
    this.control.value = JSON.stringify(value, null, 2);
  }

  take() {
    return this.control.value.trim() === "" ? undefined : readJson(this.control.value).value;
  }

  problem() {
    if (this.control.value.trim() === "") return null;
    const { value, problem } = readJson(this.control.value);
    if (problem) return problem;
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (this.schema.type === "object" && !isObject) return 'Enter an object: {"name": …}.';
    return this.schema.type === "array" && !Array.isArray(value) ? "Enter an array: […]." : null;
  }
}
