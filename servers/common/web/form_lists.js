// Fields for lists.
import { count, h, visible } from "./dom.js";
import { GroupField } from "./form_groups.js";
import { plainSchema, sameJson, schemaChoices } from "./form_schema.js";

const MOST_ITEMS = 200;
const MOST_BOXES = 60;

/** A list: its items can be added and removed. */
export class ListField extends GroupField {
  constructor(spec) {
    super(spec);
    this.items = [];
    this.isGiven = false;
    this.body = h("div", { class: "field-body" });
    this.add = this.button("Add an item", () => this.addFirst(), `Add an item to ${visible(spec.label, 100)}`);
    this.frame(this.body, this.add);
    if (spec.required && !spec.nullable && !this.isGiven) this.fillUp();
    this.number();
  }

  fillUp() {
    while (this.items.length < Math.min(this.schema.minItems ?? 0, 20)) this.addItem();
  }

  addFirst() {
    const field = this.addItem();
    this.fillUp();
    this.number();
    field.focus();
  }

  addItem() {
    const at = this.items.length;
    const schema = this.schema.prefixItems?.[at] ?? (typeof this.schema.items === "object" ? this.schema.items : {});
    const field = this.make(schema, {
      name: this.name,
      label: schema.title ?? `${this.label} ${at + 1}`,
      required: true,
      isItem: true,
    });
    const remove = h("button", { type: "button", class: "field-remove", text: "Remove" });
    const row = h("div", { class: "field-item" }, field.element, remove);
    const item = { field, row, remove };
    remove.addEventListener("click", () => this.removeItem(item));
    this.items.push(item);
    this.body.append(row);
    this.isGiven = true;
    this.setNull(false);
    return field;
  }

  removeItem(item) {
    const at = this.items.indexOf(item);
    this.items.splice(at, 1);
    item.row.remove();
    this.isGiven = this.items.length > 0;
    this.number();
    (this.items[Math.min(at, this.items.length - 1)]?.remove ?? this.add).focus();
    this.form.changed();
  }

  number() {
    const { maxItems = Infinity, items, prefixItems } = this.schema;
    const most = items === false || (prefixItems && items === undefined) ? prefixItems.length : maxItems;
    this.add.disabled = this.items.length >= Math.min(most, MOST_ITEMS);
    for (const [at, { remove }] of this.items.entries()) {
      remove.setAttribute("aria-label", `Remove item ${at + 1} of ${visible(this.label, 100)}`);
    }
  }

  put(value) {
    if (!Array.isArray(value) || value.length > MOST_ITEMS) return;
    for (const { row } of this.items.splice(0)) row.remove();
    for (const one of value) this.addItem().write(one);
    this.isGiven = true;
    this.number();
  }

  take() {
    const values = this.items.map(({ field }) => field.read()).filter((value) => value !== undefined);
    return this.isGiven || (this.required && !this.nullable) ? values : undefined;
  }

  problem() {
    return itemsProblem(this.take(), this.schema);
  }

  check(onlyGiven) {
    return this.checkAll(
      this.items.map(({ field }) => field),
      onlyGiven,
    );
  }
}

/** A selection from a few values, in the order of selection. */
export class ChoicesField extends GroupField {
  constructor(spec) {
    super(spec);
    this.choices = itemChoices(spec.schema, spec.form.root);
    this.chosen = [];
    this.isGiven = false;
    this.boxes = this.choices.map(({ title }, at) => this.makeBox(title, at));
    this.frame(h("div", { class: "field-choices" }, ...this.boxes.map(({ label }) => label)));
  }

  makeBox(title, at) {
    const box = h("input", { type: "checkbox" });
    box.addEventListener("input", () => {
      this.chosen = this.chosen.filter((one) => one !== at);
      if (box.checked) this.chosen.push(at);
      this.isGiven = this.chosen.length > 0;
    });
    return { box, label: h("label", {}, box, " ", visible(title, 200)) };
  }

  put(value) {
    if (!Array.isArray(value)) return;
    const places = value.map((one) => this.choices.findIndex((choice) => sameJson(choice.value, one)));
    if (places.includes(-1) || new Set(places).size < places.length) return;
    this.chosen = places;
    this.isGiven = true;
    for (const [at, { box }] of this.boxes.entries()) box.checked = places.includes(at);
  }

  take() {
    const isNeeded = this.required && !this.nullable;
    return this.isGiven || isNeeded ? this.chosen.map((at) => this.choices[at].value) : undefined;
  }

  problem() {
    return itemsProblem(this.take(), this.schema);
  }
}

/** The values to choose from for each item of a list; null if there are none, or too many to show. */
export function itemChoices(schema, root) {
  if (schema.prefixItems || typeof schema.items !== "object") return null;
  const items = plainSchema(schema.items, root);
  const choices = items.nullable ? null : schemaChoices(items.schema);
  return choices && choices.length > 1 && choices.length <= MOST_BOXES ? choices : null;
}

function itemsProblem(values, { minItems = 0, maxItems = Infinity, uniqueItems }) {
  if (values === undefined) return null;
  if (values.length < minItems)
    return `At least ${count(minItems)} ${minItems === 1 ? "item is" : "items are"} required.`;
  if (values.length > maxItems) return `At most ${count(maxItems)} items are allowed.`;
  const isTwice = uniqueItems && values.some((one, at) => values.slice(at + 1).some((other) => sameJson(one, other)));
  return isTwice ? "No two items may be the same." : null;
}
