// Fields for dates and files.
import { count, h, visible } from "./dom.js";
import { checkText } from "./form_checks.js";
import { FormField } from "./form_field.js";

const MOST_FILE_BYTES = 32 * 1024 * 1024;
const MOMENT = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|[+-]\d\d:\d\d)?$/i;

/** A date with a time and its UTC offset. */
export class MomentField extends FormField {
  constructor(spec) {
    super(spec);
    this.zone = h("select", { "aria-label": `Offset from UTC for ${visible(spec.label, 100)}` });
    this.zone.append(
      ...[...new Set([localOffset(), "Z"])].map(zoneOption),
      h("option", { value: "", text: "no offset" }),
    );
    this.build(h("input", { type: "datetime-local", step: "1" }));
    const line = h("div", { class: "field-line-of-two" });
    this.control.replaceWith(line);
    line.append(this.control, this.zone);
  }

  note() {
    return "date and time";
  }

  put(value) {
    const found = MOMENT.exec(value);
    if (!found) return;
    const [, day, time, zone = ""] = found;
    this.control.value = `${day}T${time}`;
    if (this.zone && ![...this.zone.options].some((option) => option.value === zone))
      this.zone.append(zoneOption(zone));
    this.zone.value = zone;
    this.given = { value, shown: this.control.value, zone };
  }

  take() {
    const { value } = this.control;
    if (value === "") return undefined;
    const { given } = this;
    if (given && value === given.shown && this.zone.value === given.zone) return given.value;
    // Browsers omit seconds of 0; RFC 3339 requires them.
    return `${value}${value.length === 16 ? ":00" : ""}${this.zone.value}`;
  }

  problem() {
    if (this.control.validity.badInput) return "This is not complete.";
    const text = this.take();
    return text === undefined ? null : checkText(text, this.schema);
  }
}

function zoneOption(zone) {
  return h("option", { value: zone, text: zone === "Z" ? "UTC" : zone });
}

function localOffset() {
  const minutes = -new Date().getTimezoneOffset();
  if (minutes === 0) return "Z";
  const part = (number) => String(Math.trunc(number)).padStart(2, "0");
  return `${minutes < 0 ? "-" : "+"}${part(Math.abs(minutes) / 60)}:${part(Math.abs(minutes) % 60)}`;
}

/** A file, sent as base64. */
export class FileField extends FormField {
  constructor(spec) {
    super(spec);
    this.text = undefined;
    this.trouble = null;
    this.pending = null;
    this.chosen = h("span", { class: "field-chosen", role: "status" });
    const remove = h("button", { type: "button", class: "plain", text: "Remove", hidden: true });
    remove.setAttribute("aria-label", `Remove the file of ${visible(spec.label, 100)}`);
    remove.addEventListener("click", () => this.choose(null));
    this.remove = remove;
    const input = h("input", { type: "file", accept: spec.schema.contentMediaType ?? null });
    input.addEventListener("change", () => input.files[0] && this.choose(input.files[0]));
    this.build(input, h("div", { class: "field-line-of-two" }, this.chosen, remove));
  }

  note() {
    return this.schema.contentMediaType ?? "file";
  }

  /** Reads `file`; null for none. `pending` is set until it has been read. */
  choose(file) {
    this.trouble = null;
    this.text = undefined;
    this.pending = file ? this.load(file) : null;
    if (!file) {
      this.control.value = "";
      this.say("");
      this.form.changed();
    }
  }

  async load(file) {
    if (file.size > MOST_FILE_BYTES) {
      this.trouble = `The file is too large: at most ${count(MOST_FILE_BYTES)} bytes can be sent.`;
    } else {
      try {
        const text = await readBase64(file);
        if (this.control.files[0] !== file) return;
        this.put(this.isForUrls() ? text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "") : text);
      } catch (error) {
        this.trouble = `The file can't be read: ${error.message}`;
      }
    }
    this.say(this.trouble ? "" : `${visible(file.name, 100)}, ${count(file.size)} bytes`);
    this.pending = null;
    this.form.changed();
    this.check(true);
  }

  isForUrls() {
    return this.schema.contentEncoding === "base64url" || this.schema.format === "base64url";
  }

  say(text) {
    this.chosen.textContent = text;
    this.remove.hidden = text === "";
  }

  put(value) {
    if (typeof value !== "string") return;
    this.text = value;
    this.say(`${count(Math.floor((value.replace(/=+$/, "").length * 3) / 4))} bytes`);
  }

  take() {
    return this.text;
  }

  wrong(onlyGiven) {
    if (this.pending) return "The file is still being read.";
    return super.wrong(onlyGiven);
  }

  problem() {
    return (
      this.trouble ?? (this.text === undefined ? null : checkText(this.text, { maxLength: this.schema.maxLength }))
    );
  }
}

function readBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result.slice(reader.result.indexOf(",") + 1)));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}
