// One call of a tool: its form, its progress, its result, and the messages exchanged for it.
import { h, clear, visible } from "../../common/web/dom.js";
import "../../common/web/form.js";
import { actionButton, folded, problem, remark } from "./pieces.js";
import { confirmCall } from "./confirm.js";
import { foldingJson } from "./contents.js";
import { requestAndKeep } from "./history.js";
import { serverHash } from "./overview.js";
import { resultView } from "./result.js";

const MOST_EXCHANGED = 200;

/** The form of a tool with its Run button, and below it the result of the last call. */
export function toolCall(app, server, tool) {
  const form = h("schema-form", {});
  const run = actionButton("Run", () => start(), "primary");
  const cancel = actionButton("Cancel", () => call?.abort(new DOMException("cancelled by the user", "AbortError")));
  cancel.hidden = true;
  const bar = h("progress", { "aria-label": "Progress" });
  const status = h("span", { class: "muted status" });
  const outcome = h("div", { class: "outcome" });
  const asTask = taskChoice(tool);
  bar.hidden = true;
  const actions = [run, cancel, asTask.node, bar, status].filter(Boolean);
  form.show(tool.inputSchema ?? { type: "object" }, undefined, { fold: true, actions });
  let call = null;
  const start = async () => {
    if (call || form.validate().length) return;
    const params = { name: tool.name, arguments: form.value, ...(asTask.isWanted() ? { task: {} } : {}) };
    if (!(await confirmCall(tool, params.arguments))) return;
    call = new AbortController();
    run.disabled = true;
    cancel.hidden = false;
    bar.hidden = false;
    bar.removeAttribute("value");
    status.textContent = "Running…";
    const exchanged = [];
    const begun = performance.now();
    const seen = (message, direction) => exchanged.length < MOST_EXCHANGED && exchanged.push({ direction, message });
    const onProgress = (progress) => showProgress(bar, status, progress);
    let view;
    try {
      const result = await requestAndKeep(app, server, "tools/call", params, {
        signal: call.signal,
        onProgress,
        onMessage: seen,
      });
      view = viewOfAnswer(app, server, tool, params, result);
      status.textContent = `${result.isError ? "Failed" : "Done"} in ${Math.round(performance.now() - begun)} ms`;
    } catch (error) {
      view = error.name === "AbortError" ? remark("The call was cancelled.") : problem(error);
      status.textContent = error.name === "AbortError" ? "Cancelled" : "Failed";
    }
    call = null;
    run.disabled = false;
    cancel.hidden = true;
    bar.hidden = true;
    app.say(`${tool.name}: ${status.textContent}`);
    clear(outcome, h("div", { class: "result" }, view), exchangeView(exchanged));
    outcome.scrollIntoView({ block: "nearest" });
  };
  form.addEventListener("submit", (event) => (event.preventDefault(), start()));
  return h("div", {}, form, outcome);
}

function taskChoice({ execution }) {
  const support = execution?.taskSupport;
  if (support !== "optional") return { node: null, isWanted: () => support === "required" };
  const box = h("input", { type: "checkbox" });
  return { node: h("label", { class: "toolbar" }, box, "as a task"), isWanted: () => box.checked };
}

function showProgress(bar, status, { progress, total, message }) {
  if (typeof total === "number" && total > 0) {
    bar.max = total;
    bar.value = Math.min(progress, total);
  }
  const part = typeof total === "number" ? `${progress} of ${total}` : String(progress);
  status.textContent = typeof message === "string" ? `${part}: ${visible(message, 200)}` : part;
}

function viewOfAnswer(app, server, tool, params, result) {
  if (result.task) {
    const link = h("a", { href: serverHash(server, "tasks"), text: "See the tasks" });
    return h("p", {}, `It continues as the task ${visible(result.task.taskId, 100)}. `, link);
  }
  const takesCursor = tool.inputSchema?.properties?.cursor !== undefined;
  const next = (cursor) =>
    requestAndKeep(app, server, "tools/call", { ...params, arguments: { ...params.arguments, cursor } });
  const openResource = (uri) => app.go(serverHash(server, "resources", uri));
  return resultView(result, { next: takesCursor ? next : null, openResource });
}

function exchangeView(exchanged) {
  const messages = () =>
    h(
      "div",
      {},
      ...exchanged.map(({ direction, message }) => {
        const title = `${direction === "sent" ? "→" : "←"} ${message.method ?? (message.error ? "error" : "answer")}`;
        const view = () => h("div", { class: "exchanged" }, foldingJson(message));
        return folded(visible(title, 200), view, { "data-direction": direction });
      }),
    );
  const title = `Request and response (${exchanged.length} messages)`;
  return folded(title, messages, { class: "exchange", "aria-label": "Messages of this call" });
}
