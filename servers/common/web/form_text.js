// The field for a text.
import { h } from "./dom.js";
import { checkText } from "./form_checks.js";
import { FormField } from "./form_field.js";

const INPUT_TYPES = { email: "email", uri: "url", date: "date", time: "time", password: "password" };
const TALLEST = 16;
const LONG_NAMES = /^(?:sql|query|content|contents|text|body|message|template|instructions|code|source|.*_?text)$/i;

/** A text: an input that grows with its contents, so that pasted line ends are not lost. */
export class TextField extends FormField {
  constructor(spec) {
    super(spec);
    const { schema, name } = spec;
    this.isLong =
      LONG_NAMES.test(name) || schema.maxLength >= 10_000 || /^text\//.test(schema.contentMediaType ?? "");
    const type = schema.writeOnly ? "password" : INPUT_TYPES[schema.format];
    const props = {
      placeholder: this.placeholder(),
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
    };
    this.sendsEmpty = false;
    if (type) this.build(h("input", { ...props, type, step: type === "time" ? "1" : null }));
    else if (this.form.complete) this.buildCompleted(props);
    else
      this.build(
        h("textarea", { ...props, rows: this.isLong ? 3 : 1, class: this.isLong ? "field-long" : "field-line" }),
      );
    this.control.addEventListener("input", () => this.grow());
  }

  buildCompleted(props) {
    const list = h("datalist", { id: `${this.id}-list` });
    const input = h("input", { ...props, type: "text", list: list.id });
    this.build(input, list);
    let asked = 0;
    const ask = async () => {
      const mine = (asked += 1);
      const found = await this.form.complete(this.name, input.value, this.form.value());
      if (mine === asked) list.replaceChildren(...(found ?? []).slice(0, 100).map((value) => h("option", { value })));
    };
    // No suggestions are requested while the user is typing.
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => void ask(), 150);
    });
    input.addEventListener("focus", () => void ask(), { once: true });
  }

  note() {
    const { format, pattern } = this.schema;
    return [format, pattern ? `pattern ${pattern}` : ""].filter(Boolean).join(", ");
  }

  grow() {
    this.setEmpty(false);
    if (this.control.tagName !== "TEXTAREA") return;
    const lines = this.control.value.slice(0, 100_000).split("\n").length;
    this.control.rows = Math.min(Math.max(lines, this.isLong ? 3 : 1), TALLEST);
  }

  put(value) {
    if (typeof value !== "string") return;
    this.control.value = value;
    // A control changes or removes line ends, so an unedited value is returned as it was given.
    this.given = { value, shown: this.control.value };
    this.grow();
    this.setEmpty(value === "");
  }

  setEmpty(isSent) {
    this.sendsEmpty = isSent;
    if (this.control.tagName === "TEXTAREA")
      this.control.placeholder = isSent ? "(an empty text)" : this.placeholder();
  }

  take() {
    const text = this.control.value;
    if (this.given && text === this.given.shown && text !== "") return this.given.value;
    return text === "" && !this.sendsEmpty ? undefined : text;
  }

  wrong(onlyGiven) {
    const message = super.wrong(onlyGiven);
    const canBeEmpty = !(this.schema.minLength > 0) && !this.schema.format && !this.schema.pattern;
    this.offersEmpty = message !== null && this.control.value === "" && canBeEmpty;
    return message;
  }

  // An empty text may be intended, which a form can't distinguish from no text.
  tell(message) {
    super.tell(message);
    if (!message || !this.offersEmpty) return;
    const send = h("button", { type: "button", class: "plain field-empty", text: "Send an empty text" });
    send.addEventListener("click", () => {
      this.setEmpty(true);
      this.control.focus();
      this.form.changed();
      this.check();
    });
    this.error.append(" ", send);
  }

  problem() {
    if (this.control.validity?.badInput) return "This is not complete.";
    const text = this.take();
    return text === undefined ? null : checkText(text, this.schema);
  }
}
