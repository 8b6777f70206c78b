// The field for an object with properties.
import { clear, count, h, visible } from "./dom.js";
import { define, GroupField } from "./form_groups.js";
import { MapField } from "./form_map.js";

const FIELDS_AT_ONCE = 100;
const FIELDS_NAMED = 8;

/** An object with properties. Optional properties appear when the user adds them. */
export class ObjectField extends GroupField {
  constructor(spec) {
    super(spec);
    this.fields = new Map();
    this.rest = {};
    this.body = h("div", { class: "field-body" });
    this.isThere = false;
    this.add = this.button("Add", () => (this.open(), this.focus()));
    this.drop = this.button("Remove", () => (this.close(), this.add.focus()));
    const isFixed = spec.isRoot || (spec.required && !spec.nullable);
    this.frame(this.body, ...(isFixed ? [] : [this.add, this.drop]));
    if (isFixed) this.open();
    else if (!this.isThere) this.close();
  }

  open() {
    if (this.isThere) return;
    this.isThere = true;
    this.setNull(false);
    this.add.hidden = true;
    this.drop.hidden = false;
    const needed = new Set(this.schema.required ?? []);
    const parts = Object.entries(this.schema.properties ?? {}).filter(([, part]) => part?.readOnly !== true);
    // If there are very many, only the required ones appear at once.
    if (parts.length > FIELDS_AT_ONCE) parts.sort(([one], [other]) => needed.has(other) - needed.has(one));
    this.needed = needed;
    this.waiting = parts;
    this.more = this.button("", () => this.showMore());
    const optional = parts.filter(([name]) => !needed.has(name));
    this.optional = this.fold && needed.size && optional.length ? optionalFields(optional) : null;
    this.body.append(...[this.optional, this.more].filter(Boolean));
    this.showMore();
    if (this.fields.size === 0) this.body.prepend(h("p", { class: "muted", text: "No input is required." }));
    this.addMap();
  }

  // The properties without a declared name.
  addMap() {
    const { additionalProperties: others, patternProperties: patterns } = this.schema;
    if (!(typeof others === "object" && others && Object.keys(others).length) && !patterns) return;
    const schema = {
      additionalProperties: others,
      patternProperties: patterns,
      propertyNames: this.schema.propertyNames,
    };
    this.others = new MapField({
      ...specOf(this),
      schema,
      name: "",
      label: "Other properties",
      required: false,
      depth: this.depth + 1,
    });
    this.body.append(this.others.element);
  }

  showMore() {
    const now = this.waiting.splice(0, FIELDS_AT_ONCE);
    for (const [name, schema] of now) this.addField(name, schema);
    this.more.hidden = this.waiting.length === 0;
    this.more.textContent = `Show ${count(this.waiting.length)} more`;
    this.more.removeAttribute("aria-label");
  }

  addField(name, schema) {
    const field = this.make(schema, { name, label: schema?.title ?? name, required: this.needed.has(name) });
    this.fields.set(name, field);
    if (!this.optional) this.more.before(field.element);
    else if (this.needed.has(name)) this.optional.before(field.element);
    else this.optional.append(field.element);
  }

  close() {
    this.isThere = false;
    this.fields.clear();
    this.others = null;
    this.rest = {};
    clear(this.body);
    this.add.hidden = false;
    this.drop.hidden = true;
  }

  put(value) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return;
    this.open();
    const others = {};
    for (const [name, part] of Object.entries(value)) {
      while (!this.fields.has(name) && this.waiting.some(([waiting]) => waiting === name)) this.showMore();
      if (!this.fields.has(name)) define(others, name, part);
      else {
        this.fields.get(name).write(part);
        if (this.optional && !this.needed.has(name)) this.optional.open = true;
      }
    }
    if (this.others) this.others.put(others);
    else this.rest = others;
  }

  take() {
    if (!this.isThere) return undefined;
    const value = { ...this.rest };
    for (const [name, field] of this.fields) {
      const part = field.read();
      if (part !== undefined) define(value, name, part);
    }
    for (const [name, part] of Object.entries(this.others?.take() ?? {})) define(value, name, part);
    return value;
  }

  check(onlyGiven) {
    return this.checkAll([...this.fields.values(), ...(this.others ? [this.others] : [])], onlyGiven);
  }
}

/** The element that optional fields fold into; it lists their names. */
function optionalFields(parts) {
  const names = parts.slice(0, FIELDS_NAMED).map(([name, schema]) => schema?.title ?? name);
  const left = parts.length > names.length ? ", …" : "";
  const text = visible(`${names.join(", ")}${left}`, 200);
  const summary = h("summary", {}, "Optional: ", h("span", { class: "muted", text }));
  return h("details", { class: "field-optional" }, summary);
}

function specOf({ form, depth }) {
  return { form, depth, nullable: false };
}
