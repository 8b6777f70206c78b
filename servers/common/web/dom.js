// Creates elements without HTML from strings: text from a server is only ever inserted as text.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set("value checked disabled hidden indeterminate selected open readOnly".split(" "));
const SAFE_LINK = /^(?:https?:\/\/|mailto:|#|blob:)/i;
// Characters that change the appearance of text, or hide it. Joiners stay: scripts and emoji need them.
const UNSEEN = new RegExp(
  "\\r\\n?|[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]|[\\u{e0000}-\\u{e0fff}]|\\p{Surrogate}",
  "gu",
);

/** An element: `class`, `text`, `on: {click: f}`, otherwise attributes and properties by name; null is omitted. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An SVG element, created like those of `h`. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Replaces the contents of `node` with `children`, and returns `node`. */
export function clear(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

function set(element, name, value) {
  if (name === "on") {
    for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
  } else if (name === "text") {
    element.textContent = value;
  } else if (name === "class") {
    element.setAttribute("class", value);
  } else if (PROPERTIES.has(name) && name in element) {
    element[name] = value;
  } else if (/^(?:on|style$|srcdoc$|innerhtml$|outerhtml$)/i.test(name)) {
    throw new TypeError(`${name} is not set from a text`);
  } else if (/^(?:href|action|formaction)$/i.test(name) && !SAFE_LINK.test(value)) {
    // A link to a script, a file or a program is not a link.
  } else if (value === true || (value !== false && value !== null && value !== undefined)) {
    // An ARIA state is "true" or "false", not present or absent.
    element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  } else if (name.startsWith("aria-") && value === false) {
    element.setAttribute(name, "false");
  } else {
    element.removeAttribute(name);
  }
}

/** `text` with hidden and direction-changing characters made visible; cut after `most` characters, with a note. */
export function visible(text, most = 10_000) {
  const whole = String(text);
  if (whole.length <= most) return whole.replace(UNSEEN, picture);
  // Not within a surrogate pair.
  const end = /[\ud800-\udbff]/.test(whole[most - 1]) ? most - 1 : most;
  return `${whole.slice(0, end).replace(UNSEEN, picture)}… (${count(whole.length - end)} more characters)`;
}

function picture(unseen) {
  if (unseen === "\r\n") return "\n";
  const code = unseen.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** A count as text, such as 12,345. */
export function count(number) {
  return Number(number).toLocaleString("en-US");
}

/** The text of any JSON value in a cell; empty for null. */
export function cellText(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    return "(can't be shown as text)";
  }
}

/** Copies `text` to the clipboard. Returns true if that was allowed. */
export async function copyText(text) {
  // If a frame may not use the clipboard, the browser logs an error for the attempt.
  if (document.featurePolicy?.allowsFeature("clipboard-write") === false) return copyBySelection(text);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

// A host may deny an app the clipboard API, and still allow the copy command.
function copyBySelection(text) {
  const before = document.activeElement;
  const area = h("textarea", { class: "visually-hidden", "aria-hidden": "true", tabindex: "-1", value: text });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before?.focus?.();
  return done;
}
