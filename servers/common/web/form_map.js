// The field for names that the user enters, each with a value.
import { count, h, visible } from "./dom.js";
import { define, GroupField } from "./form_groups.js";

const MOST_ENTRIES = 200;

/** Names that the user enters, each with a value. */
export class MapField extends GroupField {
  constructor(spec) {
    super(spec);
    this.entries = [];
    this.isGiven = false;
    this.body = h("div", { class: "field-body" });
    this.add = this.button(
      "Add an entry",
      () => this.addEntry().key.focus(),
      `Add an entry to ${visible(spec.label, 100)}`,
    );
    this.frame(this.body, this.add);
  }

  addEntry(name = "") {
    const { additionalProperties: others, patternProperties: patterns } = this.schema;
    const schema = typeof others === "object" && others ? others : (Object.values(patterns ?? {})[0] ?? {});
    const label = `Value ${this.entries.length + 1} of ${this.label}`;
    const key = h("input", { type: "text", value: name, placeholder: "name", autocomplete: "off" });
    key.setAttribute("aria-label", `Name ${this.entries.length + 1} of ${visible(this.label, 100)}`);
    const field = this.make(schema, { name: this.name, label, required: true, isItem: true });
    const remove = h("button", { type: "button", class: "field-remove", text: "Remove" });
    remove.setAttribute("aria-label", `Remove entry ${this.entries.length + 1} of ${visible(this.label, 100)}`);
    const entry = { key, field, row: h("div", { class: "field-item field-entry" }, key, field.element, remove) };
    remove.addEventListener("click", () => {
      this.entries.splice(this.entries.indexOf(entry), 1);
      entry.row.remove();
      this.isGiven = this.entries.length > 0;
      this.add.focus();
      this.form.changed();
    });
    this.entries.push(entry);
    this.body.append(entry.row);
    this.add.disabled = this.entries.length >= MOST_ENTRIES;
    this.isGiven = true;
    this.setNull(false);
    return entry;
  }

  put(value) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return;
    const given = Object.entries(value);
    if (given.length > MOST_ENTRIES) return;
    for (const { row } of this.entries.splice(0)) row.remove();
    for (const [name, part] of given) this.addEntry(name).field.write(part);
    this.isGiven = true;
  }

  take() {
    if (!this.isGiven && !(this.required && !this.nullable)) return undefined;
    const value = {};
    for (const { key, field } of this.entries) {
      const part = field.read();
      if (part !== undefined) define(value, key.value, part);
    }
    return value;
  }

  problem() {
    const names = this.entries.map(({ key }) => key.value);
    if (new Set(names).size < names.length) return "No two entries may have the same name.";
    const { minProperties = 0, maxProperties = Infinity } = this.schema;
    if (this.isGiven && names.length < minProperties) return `At least ${count(minProperties)} entries are required.`;
    return names.length > maxProperties ? `At most ${count(maxProperties)} entries are allowed.` : null;
  }

  check(onlyGiven) {
    return this.checkAll(
      this.entries.map(({ field }) => field),
      onlyGiven,
    );
  }
}
