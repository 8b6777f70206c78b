// The messages between this page and the servers.
import { h, clear, count, visible } from "../../common/web/dom.js";
import { foldingJson } from "./contents.js";
import { LiveSection } from "./lifetime.js";
import { actionButton, folded } from "./pieces.js";

const MOST_MESSAGES = 1_000;
const MOST_LOG_BYTES = 8_000_000;
const LOGGED_AT_ONCE = 200;
const DIRECTION_SIGNS = { sent: "→", received: "←" };

/** The most recent messages, limited by their number and total size. */
export class MessageLog extends EventTarget {
  records = [];
  #bytes = 0;
  #methods = new Map();
  #count = 0;

  /** Stores a message: `{direction, message, at, server}`. */
  add({ direction, message, at, server }) {
    const text = JSON.stringify(message);
    const record = { number: (this.#count += 1), direction, message, at, server, text, method: "" };
    record.method = this.#methodOf(record);
    this.records.push(record);
    this.#bytes += text.length;
    // A message that exceeds the limit by itself is stored until the next one.
    while (this.records.length > 1 && (this.records.length > MOST_MESSAGES || this.#bytes > MOST_LOG_BYTES)) {
      this.#bytes -= this.records.shift().text.length;
    }
    this.dispatchEvent(new CustomEvent("record", { detail: record }));
  }

  /** Deletes everything. */
  clear() {
    this.records = [];
    this.#bytes = 0;
    this.dispatchEvent(new Event("clear"));
  }

  /** The method of a request, or of the request that a response answers. */
  #methodOf({ direction, message, server }) {
    const asked = (who) => `${server} ${who} ${JSON.stringify(message?.id)}`;
    if (message?.method !== undefined) {
      if (message.id !== undefined) this.#methods.set(asked(direction), String(message.method));
      if (this.#methods.size > MOST_MESSAGES) this.#methods.delete(this.#methods.keys().next().value);
      return String(message.method);
    }
    const key = asked(direction === "sent" ? "received" : "sent");
    const method = this.#methods.get(key) ?? "";
    this.#methods.delete(key);
    return method;
  }
}

/** The panel with the message log. */
export function logPanel(app) {
  const filters = logFilters(app);
  const list = h("div", { class: "message-list", role: "log", "aria-label": "Messages", "aria-live": "off" });
  const total = h("span", { class: "muted" });
  const section = new LiveSection();
  let isPaused = false;
  const pause = h("button", { type: "button", text: "Pause", "aria-pressed": "false" });
  const wipe = actionButton("Clear", () => app.log.clear());
  const say = () => {
    total.textContent = `${count(list.childElementCount)} of ${count(app.log.records.length)} messages`;
  };
  const show = () => {
    const found = app.log.records.filter((record) => filters.takes(record));
    clear(list, ...found.slice(-LOGGED_AT_ONCE).reverse().map(messageRow));
    say();
  };
  section.className = "panel";
  section.append(
    h("header", { class: "toolbar" }, h("h2", { text: "Messages" }), pause, wipe, total),
    filters.form,
    list,
  );
  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    if (!isPaused) show();
  });
  section.listen(app.log, "record", ({ detail }) => {
    if (isPaused) return;
    if (filters.takes(detail)) list.prepend(messageRow(detail));
    if (list.childElementCount > LOGGED_AT_ONCE) list.lastElementChild.remove();
    say();
  });
  section.listen(app.log, "clear", show);
  filters.form.addEventListener("input", show);
  show();
  return section;
}

function logFilters(app) {
  const choice = (label, options) => {
    const all = [
      h("option", { value: "", text: "all" }),
      ...options.map((one) => h("option", { value: one, text: one })),
    ];
    const select = h("select", {}, ...all);
    return [h("label", {}, `${label} `, select), select];
  };
  const field = (label) => {
    const input = h("input", { type: "search", autocomplete: "off" });
    return [h("label", {}, `${label} `, input), input];
  };
  const [serverLabel, server] = choice(
    "Server",
    app.servers.map(({ name }) => name),
  );
  const [directionLabel, direction] = choice("Direction", ["sent", "received"]);
  const [methodLabel, method] = field("Method");
  const [textLabel, text] = field("Text");
  const labels = [serverLabel, directionLabel, methodLabel, textLabel];
  const form = h("form", {
    class: "toolbar",
    "aria-label": "Filter",
    on: { submit: (event) => event.preventDefault() },
  });
  form.append(...labels);
  const takes = (record) =>
    (!server.value || record.server === server.value) &&
    (!direction.value || record.direction === direction.value) &&
    record.method.toLowerCase().includes(method.value.trim().toLowerCase()) &&
    (!text.value || record.text.toLowerCase().includes(text.value.toLowerCase()));
  return { form, takes };
}

function messageRow(record) {
  const { direction, message, at, server, text, method } = record;
  const kind = message?.error ? "error" : message?.method === undefined ? "result" : "";
  const id = message?.id === undefined ? "" : `#${message.id}`;
  const summary = [
    h("span", { class: "muted", text: at.toLocaleTimeString() }),
    h("span", { role: "img", "aria-label": direction, text: ` ${DIRECTION_SIGNS[direction]} ` }),
    h("span", { text: visible(`${server} `, 100) }),
    h("strong", { text: visible(`${method} ${kind}`, 200) }),
    h("span", { class: "muted", text: visible(` ${id} ${count(text.length)} B`, 100) }),
  ];
  return folded(summary, () => foldingJson(message), { "data-direction": direction });
}
