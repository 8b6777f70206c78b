// The arguments of a prompt, which are texts: a field for each, as the prompts server accepts them.

import { clear, h, visible } from "../../common/web/dom.js";

const HINTS = {
  boolean: "Yes or no.",
  file: "The path of a file.",
  list: "One per line, or separated by commas.",
  number: "A number.",
  url: "An address that begins with http:// or https://.",
};
const LINES = { string: 3, list: 3 };
const NUMBER = /^[-+]?\d{1,100}(\.\d{1,100})?(e[-+]?\d{1,3})?$/i;
const ADDRESS = /^https?:\/\/\S+$/i;
const LISTED = /^([^\s:()]+) \((.*?)\): (.*)$/;

/** The arguments of a prompt in an answer of search_prompts, for a result that does not contain them. */
export function argumentsListed(text, name) {
  const lines = text.split("\n").map((line) => LISTED.exec(line));
  const found = lines.find((line) => line?.[1] === name);
  return (found?.[2].split(", ") ?? []).map((one) => {
    const [written, values] = one.split("=");
    const argument = { name: written.replace(/\*$/, ""), required: written.endsWith("*"), type: "string" };
    return values ? { ...argument, type: "enum", enum: values.split("|") } : argument;
  });
}

/** `<argument-form>`: a field for each argument. It sends the event `filled` when the prompt is to be rendered. */
export class ArgumentForm extends HTMLElement {
  #fields = [];

  /** Shows fields for `args`, filled in with given values: an object, or a list of names and values. */
  show(args, given) {
    const pairs = Array.isArray(given) ? given.map((one) => [one?.name, one?.value]) : Object.entries(given ?? {});
    const values = new Map(pairs);
    this.#fields = args.map((one, at) => makeField(one, at, textOfValue(values.get(one.name))));
    const render = h("button", { type: "button", text: "Render", on: { click: () => this.#send() } });
    clear(this, ...this.#fields.map((field) => field.element), render);
    // An HTML form would not be sent: a host's frame may forbid that.
    this.onkeydown = (event) => {
      const wanted = event.key === "Enter" && (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey);
      if (wanted) {
        event.preventDefault();
        this.#send();
      }
    };
  }

  /** The values for render_prompt: names and texts, without empty ones. */
  get given() {
    const filled = this.#fields.filter(({ control }) => control.value !== "");
    return filled.map(({ argument, control }) => ({ name: argument.name, value: control.value }));
  }

  #send() {
    const wrong = this.#fields.filter(checkField);
    if (wrong.length > 0) {
      wrong[0].control.focus();
    } else {
      this.dispatchEvent(new Event("filled"));
    }
  }
}

function makeField(argument, at, value) {
  const id = `argument-${at}`;
  const control = makeControl(argument, value);
  const hint = [argument.description, HINTS[argument.type]].filter(Boolean).join(" ");
  const error = h("p", { class: "error field-error", id: `${id}-error` });
  const described = h("p", { class: "muted field-hint", id: `${id}-hint`, text: visible(hint, 1_000) });
  control.id = id;
  control.setAttribute("aria-describedby", `${id}-hint ${id}-error`);
  control.setAttribute("aria-required", String(Boolean(argument.required)));
  const mark = argument.required ? h("span", { class: "required", "aria-hidden": "true", text: " *" }) : null;
  const label = h("label", { for: id }, visible(argument.title || argument.name, 200), mark);
  return { argument, control, error, element: h("div", { class: "field" }, label, described, control, error) };
}

function makeControl({ type, enum: values, required }, value) {
  const choices = type === "boolean" ? ["true", "false"] : values;
  if (choices?.length > 0) {
    const given = value === "" || choices.includes(value) ? choices : [value, ...choices];
    const options = (required && value ? given : ["", ...given]).map((one) =>
      h("option", { value: one }, visible(one, 200)),
    );
    return h("select", { value }, ...options);
  }
  const rows = LINES[type ?? "string"];
  return rows ? h("textarea", { rows: String(rows), value }) : h("input", { type: "text", value });
}

/** Returns true if a field has an error, which it then shows. */
function checkField({ argument, control, error }) {
  const value = control.value.trim();
  let wrong = "";
  if (value === "") {
    wrong = argument.required ? "A value is required." : "";
  } else if (argument.type === "number" && !NUMBER.test(value)) {
    wrong = "This is not a number.";
  } else if (argument.type === "url" && !ADDRESS.test(value)) {
    wrong = "This is not a web address.";
  }
  error.textContent = wrong;
  control.setAttribute("aria-invalid", String(wrong !== ""));
  return wrong !== "";
}

function textOfValue(value) {
  if (value === undefined || value === null) {
    return "";
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}

customElements.define("argument-form", ArgumentForm);
