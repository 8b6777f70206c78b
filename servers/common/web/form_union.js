// The field for a value of one of several kinds.
import { clear, h, visible } from "./dom.js";
import { GroupField } from "./form_groups.js";
import { fitsSchema, plainSchema, schemaChoices } from "./form_schema.js";

const MOST_KINDS = 200;

/** A value of one of several kinds, which is chosen first. */
export class UnionField extends GroupField {
  constructor(spec) {
    super(spec);
    this.variants = spec.schema.variants;
    this.field = null;
    const none = this.required && !this.nullable ? [] : [h("option", { value: "", text: "—" })];
    const options = this.variants
      .slice(0, MOST_KINDS)
      .map((part, at) => h("option", { value: String(at), text: variantName(part, at, this.form) }));
    this.choice = h("select", { "aria-label": `Kind of ${visible(this.label, 100)}` }, ...none, ...options);
    this.choice.addEventListener("change", () => this.choose());
    this.body = h("div", { class: "field-body" });
    this.frame(this.choice, this.body);
    if (!this.field) this.choose();
  }

  choose() {
    const part = this.choice.value === "" ? null : this.variants[Number(this.choice.value)];
    this.field = part ? this.make(part, { name: this.name, label: this.label, required: true, isItem: true }) : null;
    clear(this.body, this.field?.element);
  }

  put(value) {
    const at = this.variants.findIndex((part) => fitsSchema(value, part, this.form.root));
    if (at < 0) return;
    this.choice.value = String(at);
    this.choose();
    this.field.write(value);
  }

  take() {
    return this.field?.read();
  }

  wrong() {
    return null;
  }

  check(onlyGiven) {
    return this.checkAll(this.field ? [this.field] : [], onlyGiven);
  }
}

function variantName(part, at, form) {
  const { schema } = plainSchema(part, form.root);
  const constant = Object.values(schema.properties ?? {}).find((one) => typeof one?.const === "string")?.const;
  const choices = schemaChoices(schema);
  const name =
    schema.title ??
    constant ??
    (choices
      ? choices
          .slice(0, 3)
          .map(({ title }) => title)
          .join(", ")
      : schema.type);
  return visible(name ?? `kind ${at + 1}`, 100);
}
