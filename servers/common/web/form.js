// <schema-form>: a form for a JSON Schema, whose value is exactly what the user entered.
import { clear, h, visible } from "./dom.js";
import { readJson } from "./form_checks.js";
import { fieldAround, JsonField } from "./form_field.js";
import { CheckField, ChoiceField, NumberField } from "./form_inputs.js";
import { ChoicesField, itemChoices, ListField } from "./form_lists.js";
import { MapField } from "./form_map.js";
import { ObjectField } from "./form_object.js";
import { plainSchema, sameJson, schemaKind } from "./form_schema.js";
import { FileField, MomentField } from "./form_special.js";
import { TextField } from "./form_text.js";
import { UnionField } from "./form_union.js";

const DEEPEST_FIELD = 12;
const FIELD_KINDS = {
  choice: ChoiceField,
  file: FileField,
  json: JsonField,
  list: ListField,
  map: MapField,
  moment: MomentField,
  number: NumberField,
  object: ObjectField,
  text: TextField,
  union: UnionField,
};

/**
 * `<schema-form>`. Events: `submit` (`detail` is the value) when the form is submitted without errors; `input` after
 * each change.
 */
export class SchemaForm extends HTMLElement {
  #form = null;
  #field = null;
  #json = null;
  #isChecked = false;
  #schema = {};
  #options = {};

  /**
   * Shows a form for `schema`, of an object, filled in with `values`. `action`: the text of the submit button.
   * `actions`: elements next to that button. `fold`: optional fields are folded if others are required. `prefill`:
   * defaults are filled in, and therefore sent; otherwise they are shown, and left to the server. `complete(name,
   * text, value)`: a promise of suggestions for a text field.
   */
  show(schema, values = undefined, options = {}) {
    this.#schema = typeof schema === "object" && schema ? schema : {};
    this.#options = options;
    this.#isChecked = false;
    const form = h("form", { novalidate: true, autocomplete: "off" });
    form.addEventListener("submit", (event) => void this.#submit(event));
    form.addEventListener("keydown", (event) => this.#key(event));
    form.addEventListener("input", () => this.#isChecked && this.validate());
    form.addEventListener("focusout", ({ target }) => this.#isChecked || fieldAround(target)?.check(true));
    this.#form = form;
    clear(this, form);
    this.#showFields(values);
  }

  /** The value, without empty optional fields. It is incomplete if `validate` finds an error. */
  get value() {
    if (!this.#json) return this.#field?.read() ?? {};
    return readJson(this.#json.value).value ?? {};
  }

  /** Returns the errors as texts, and shows them at the fields. */
  validate() {
    return this.#check().map(({ message }) => message);
  }

  /** Submits the form, as its button does. */
  submit() {
    this.#form.requestSubmit();
  }

  #showFields(values) {
    const { prefill = false, fold = false, complete = null } = this.#options;
    const context = {
      root: this.#schema,
      prefill,
      complete,
      make: (schema, spec) => makeField(schema, { ...spec, form: context }),
      changed: () => this.#form.dispatchEvent(new Event("input", { bubbles: true })),
      value: () => this.value,
    };
    this.#json = null;
    this.#field = makeField(this.#schema, {
      name: "",
      label: "Arguments",
      required: true,
      isRoot: true,
      fold,
      depth: 0,
      form: context,
    });
    if (values !== undefined && values !== null) this.#field.write(values);
    const isWhole = values === undefined || values === null || sameJson(this.#field.read() ?? {}, values);
    if (isWhole) this.#lay(this.#field.element, "Edit as JSON", () => this.#showJson(this.value));
    else this.#showJson(values, "These values do not fit the form.");
    return isWhole;
  }

  #lay(content, text, act) {
    const { action, actions = [] } = this.#options;
    const mode = h("button", { type: "button", class: "plain form-mode", text, on: { click: act } });
    const run = action ? h("button", { type: "submit", text: action }) : null;
    this.summary = h("p", { class: "error form-summary", role: "alert" });
    clear(this.#form, content, this.summary, h("div", { class: "toolbar form-actions" }, run, ...actions, mode));
  }

  #showJson(value, why = "") {
    const text = JSON.stringify(value, null, 2);
    const area = h("textarea", {
      class: "form-json",
      rows: 10,
      spellcheck: "false",
      value: text,
      "aria-label": "Arguments as JSON",
    });
    this.#json = area;
    const error = h("p", { class: "error field-error", id: "form-json-error" });
    area.setAttribute("aria-describedby", error.id);
    this.#lay(h("div", { class: "field" }, area, error), "Edit as a form", () => {
      if (this.validate().length === 0) this.#showFields(this.value);
    });
    error.textContent = why;
  }

  #check() {
    this.#isChecked = true;
    if (!this.#json) return this.#field.check();
    const { value, problem } = readJson(this.#json.value);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    const message = problem ?? (isObject ? null : 'Enter an object: {"name": …}.');
    this.#json.nextElementSibling.textContent = message ? visible(message, 500) : "";
    this.#json.setAttribute("aria-invalid", String(Boolean(message)));
    return message ? [{ message, field: this.#json }] : [];
  }

  async #submit(event) {
    event.preventDefault();
    event.stopPropagation();
    const files = [...this.querySelectorAll("input[type=file]")].map((input) => fieldAround(input)?.pending);
    await Promise.all(files);
    const found = this.#check();
    this.summary.textContent = found.length
      ? `${found.length} ${found.length === 1 ? "field needs" : "fields need"} attention.`
      : "";
    if (found.length) found[0].field.focus();
    else this.dispatchEvent(new CustomEvent("submit", { detail: this.value, cancelable: true }));
  }

  // Enter submits from a single line, as in an input; Ctrl+Enter submits from anywhere.
  #key(event) {
    if (event.key !== "Enter" || event.isComposing || event.target.tagName !== "TEXTAREA") return;
    const isLine =
      event.target.classList.contains("field-line") && !event.target.value.includes("\n") && !event.shiftKey;
    if (!isLine && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.submit();
  }
}

function makeField(given, spec) {
  const { schema, nullable } = plainSchema(given, spec.form.root);
  const kind = spec.isRoot ? rootKind(schema) : spec.depth > DEEPEST_FIELD ? "json" : schemaKind(schema);
  const whole = { ...spec, schema, nullable };
  if (kind === "list" && itemChoices(schema, spec.form.root)) return new ChoicesField(whole);
  if (kind !== "boolean") return new FIELD_KINDS[kind](whole);
  const isAlwaysGiven = !nullable && (spec.required || typeof schema.default === "boolean");
  return isAlwaysGiven ? new CheckField(whole) : new ChoiceField(whole);
}

// Arguments are an object, even if their schema omits the type; without properties, no fields are shown.
function rootKind(schema) {
  const kind = schemaKind(schema.type ? schema : { ...schema, type: "object" });
  return kind === "json" || kind === "object" ? "object" : kind;
}

customElements.define("schema-form", SchemaForm);
