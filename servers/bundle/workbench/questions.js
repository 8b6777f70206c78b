// A server's questions to the user: forms, pages to visit, and completions written by hand.
import { h, clear, visible } from "../../common/web/dom.js";
import "../../common/web/form.js";
import { blockView, foldingJson } from "./contents.js";
import { actionButton, folded, remark, toolbar } from "./pieces.js";

const REFUSED = -1;
const METHOD_NOT_FOUND = -32_601;
const SHOWN_BLOCKS = 200;
let lastQuestion = Promise.resolve();

/**
 * Shows a server's request to the user, after earlier ones. Returns the result to send. `signal` withdraws the
 * request.
 */
export function askUser(app, server, message, signal) {
  const put = () => putQuestion(app, server, message, signal);
  const answer = lastQuestion.then(put, put);
  lastQuestion = answer.catch(() => {});
  return answer;
}

async function putQuestion(app, server, message, signal) {
  const params = message.params ?? {};
  if (signal?.aborted) throw questionError(REFUSED, "the server has withdrawn its question");
  const isVisit = message.method === "elicitation/create" && params.mode === "url";
  if (message.method === "sampling/createMessage") return askOver(app, server, params, samplingParts, signal);
  if (isVisit) return askOver(app, server, params, visitParts, signal);
  if (message.method === "elicitation/create") return askOver(app, server, params, formParts, signal);
  throw questionError(METHOD_NOT_FOUND, `method not found: ${message.method}`);
}

function questionError(code, text) {
  return Object.assign(new Error(text), { code });
}

/** Shows a dialog with the contents of `make(params, server, end)` until one of its buttons or the server ends it. */
async function askOver(app, server, params, make, signal) {
  const dialog = h("dialog", { class: "question" });
  document.body.append(dialog);
  try {
    return await new Promise((resolve, reject) => {
      const withdraw = () => reject(questionError(REFUSED, "the server has withdrawn its question"));
      signal?.addEventListener("abort", withdraw);
      const { title, parts, cancelled } = make(params, server, { resolve, reject });
      const heading = h("h2", { id: "question-title", text: visible(title, 300) });
      dialog.setAttribute("aria-labelledby", heading.id);
      clear(dialog, heading, ...parts);
      // Escape is an answer, too.
      dialog.addEventListener("close", cancelled);
      dialog.showModal();
      app.say(title);
    });
  } finally {
    dialog.close();
    dialog.remove();
  }
}

function saidBy(text) {
  return [
    remark("Enter only what the server may know."),
    h("p", { class: "question-text", text: visible(text ?? "", 5_000) }),
  ];
}

function formParts(params, server, { resolve }) {
  const form = h("schema-form", {});
  form.show(params.requestedSchema ?? { type: "object", properties: {} });
  const accept = () => {
    if (form.validate().length === 0) resolve({ action: "accept", content: form.value });
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    accept();
  });
  const buttons = toolbar(
    actionButton("Send", accept, "primary"),
    actionButton("Decline", () => resolve({ action: "decline" })),
    actionButton("Cancel", () => resolve({ action: "cancel" }), "plain"),
  );
  const cancelled = () => resolve({ action: "cancel" });
  return { title: `${server} asks`, parts: [...saidBy(params.message), form, buttons], cancelled };
}

function visitParts(params, server, { resolve }) {
  const address = webAddress(params.url);
  const whole = address?.href ?? String(params.url ?? "");
  const open = address
    ? h("a", {
        class: "button",
        href: address.href,
        target: "_blank",
        rel: "noopener noreferrer",
        text: `Open ${visible(address.host, 200)} in a new tab`,
        on: { click: () => resolve({ action: "accept" }) },
      })
    : h("p", { class: "error", text: "This is not a web address (http or https): it is not opened." });
  const buttons = toolbar(
    open,
    actionButton("Decline", () => resolve({ action: "decline" })),
    actionButton("Cancel", () => resolve({ action: "cancel" }), "plain"),
  );
  const shown = h("pre", { tabindex: "0", "aria-label": "Address", text: visible(whole, 20_000) });
  const warning = h("p", { text: "Open the page only if you trust the server, and recognize the address." });
  const cancelled = () => resolve({ action: "cancel" });
  return {
    title: `${server} asks you to visit a page`,
    parts: [...saidBy(params.message), shown, warning, buttons],
    cancelled,
  };
}

function webAddress(text) {
  try {
    const address = new URL(text);
    return ["http:", "https:"].includes(address.protocol) ? address : null;
  } catch {
    return null;
  }
}

function samplingParts(params, server, { resolve, reject }) {
  const { messages, systemPrompt, ...other } = params;
  const answer = h("textarea", { id: "sampling-answer", rows: "6" });
  const refuse = () => reject(questionError(REFUSED, "the user refused to answer"));
  const send = () => {
    if (!answer.value) answer.focus();
    else
      resolve({
        role: "assistant",
        content: { type: "text", text: answer.value },
        model: "a person",
        stopReason: "endTurn",
      });
  };
  const buttons = toolbar(actionButton("Send", send, "primary"), actionButton("Refuse", refuse));
  const parts = [
    h("p", {
      class: "muted",
      text: `The server ${visible(server, 100)} asks for an answer to these messages, such as a model would give.`,
    }),
    systemPrompt ? h("p", { class: "question-text", text: visible(`System: ${systemPrompt}`, 5_000) }) : null,
    samplingMessages(Array.isArray(messages) ? messages : []),
    folded("Other fields", () => foldingJson(other)),
    h("label", { for: answer.id, text: "Answer" }),
    answer,
    buttons,
  ];
  return { title: `${server} asks for a completion`, parts: parts.filter(Boolean), cancelled: refuse };
}

function samplingMessages(messages) {
  const items = messages.slice(-SHOWN_BLOCKS).map((message) => {
    const blocks = Array.isArray(message?.content) ? message.content : [message?.content];
    const role = h("span", { class: "badge", text: visible(message?.role ?? "", 50) });
    return h("li", { class: "card message" }, role, ...blocks.map((one) => blockView(one, () => {})));
  });
  return h("ol", { class: "plain-list", "aria-label": "Messages" }, ...items);
}
