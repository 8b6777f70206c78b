// Makes elements without HTML from strings: what a server sends gets into a page as text, and in no other way.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set("value checked disabled hidden indeterminate selected open readOnly".split(" "));
const SAFE_LINK = /^(?:https?:\/\/|mailto:|#|blob:)/i;
// What changes how text looks, or whether it is seen at all. The joiners stay: scripts and emoji need them.
const UNSEEN = new RegExp(
  "\\r\\n?|[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]|[\\u{e0000}-\\u{e0fff}]|\\p{Surrogate}",
  "gu",
);

/** An element: `class`, `text`, `on: {click: f}`, else attributes and properties by their names; null is left out. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An element of SVG, made as `h` makes those of HTML. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Puts `children` in place of all that is in `node`, and gives `node` back. */
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
    // A link that leads into a script, a file or a program is none.
  } else if (value === true || (value !== false && value !== null && value !== undefined)) {
    // What is said of a state by ARIA is "true" or "false", and not there or missing.
    element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  } else if (name.startsWith("aria-") && value === false) {
    element.setAttribute(name, "false");
  } else {
    element.removeAttribute(name);
  }
}

/** `text` with what hides, or changes how it is read, made visible; cut after `most` characters, saying so. */
export function visible(text, most = 10_000) {
  const whole = String(text);
  if (whole.length <= most) return whole.replace(UNSEEN, picture);
  // Not between the halves of one character.
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

/** A number of things as text, as 12,345. */
export function count(number) {
  return Number(number).toLocaleString("en-US");
}

/** The text of any JSON value in a cell; of null none. */
export function cellText(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    return "(can't be shown as text)";
  }
}

/** Copies `text` to the clipboard; whether that was allowed. */
export async function copyText(text) {
  // Where a frame may not use the clipboard, to ask for it is an error that the browser writes down.
  if (document.featurePolicy?.allowsFeature("clipboard-write") === false) return copyBySelection(text);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

// In the frame of an app a host may refuse the clipboard, and still let the user's own copying through.
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
