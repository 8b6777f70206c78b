// Calls that run as tasks: started, watched, cancelled, and their results.
import { h, clear, visible } from "../../common/web/dom.js";
import "../../common/web/form.js";
import { confirmCall } from "./confirm.js";
import { foldingJson } from "./contents.js";
import { LiveSection } from "./lifetime.js";
import { problem, remark, toolbar } from "./pieces.js";

const MOST_TASKS = 100;
// Each task waits on its own connection, and a browser has only six in total.
const MOST_FOLLOWED = 2;
const OVER = ["completed", "failed", "cancelled"];
const TASK_COLORS = { completed: "ok", failed: "danger", cancelled: "warn", input_required: "warn" };

/** The known tasks of each server. They are kept when the panel is left, because the calls continue. */
const knownTasks = new Map();

/** The tasks of one server: their state and results. */
class TaskBoard extends EventTarget {
  tasks = new Map();
  #followed = new Set();
  #waiting = [];
  #following = 0;

  constructor(client) {
    super();
    this.client = client;
    client.addEventListener("notification", ({ detail }) => {
      if (detail.method === "notifications/tasks/status" && this.tasks.has(detail.params?.taskId))
        this.take(detail.params);
    });
  }

  /** Calls a tool as a task. */
  async start(name, given) {
    const result = await this.client.request("tools/call", { name, arguments: given, task: {} });
    // A server may still answer immediately.
    if (!result?.task) return result;
    this.take({ ...result.task, tool: name });
    this.follow(result.task.taskId);
    return null;
  }

  /** Stores a task's reported state. */
  take(task) {
    const known = this.tasks.get(task.taskId) ?? {};
    // A late report does not change a finished task.
    const isLate = OVER.includes(known.status) && !OVER.includes(task.status);
    this.tasks.delete(task.taskId);
    this.tasks.set(task.taskId, isLate ? { ...task, ...known } : { ...known, ...task });
    while (this.tasks.size > MOST_TASKS) this.tasks.delete(this.tasks.keys().next().value);
    this.dispatchEvent(new Event("change"));
  }

  /** Waits for the end of a task, a few at a time; meanwhile the server may ask questions. */
  async follow(taskId) {
    if (this.#followed.has(taskId)) return;
    this.#followed.add(taskId);
    if (this.#following >= MOST_FOLLOWED) await new Promise((resolve) => this.#waiting.push(resolve));
    this.#following += 1;
    await this.#resultOf(taskId);
    this.#following -= 1;
    this.#waiting.shift()?.();
    await this.refresh(taskId);
  }

  async #resultOf(taskId) {
    try {
      this.take({ taskId, result: await this.client.request("tasks/result", { taskId }), error: undefined });
    } catch (error) {
      // The connection may have ended, but not the task: it can be followed again.
      this.#followed.delete(taskId);
      this.take({ taskId, error: error.message });
    }
  }

  /** Requests the state of a task. */
  async refresh(taskId) {
    try {
      this.take(await this.client.request("tasks/get", { taskId }));
    } catch (error) {
      this.take({ taskId, error: error.message });
    }
  }

  /** Requests the server's tasks, if it lists them. */
  async load() {
    if (this.client.capabilities?.tasks?.list === undefined) return;
    for (const task of (await this.client.list("tasks/list", "tasks")).reverse()) this.take(task);
  }

  /** Cancels a task. */
  async cancel(taskId) {
    this.take(await this.client.request("tasks/cancel", { taskId }));
  }
}

async function taskBoard(app, server) {
  const client = await app.client(server);
  if (knownTasks.get(server)?.client !== client) knownTasks.set(server, new TaskBoard(client));
  return knownTasks.get(server);
}

/** The panel of a server's tasks. */
export function tasksPanel(app, server) {
  const section = new LiveSection();
  const body = h("div", {}, remark("Loading…"));
  section.className = "panel";
  section.append(h("h2", { text: "Tasks" }), body);
  fillTasks(app, server, section, body).catch((error) => {
    clear(body, problem(error));
  });
  return section;
}

async function fillTasks(app, server, section, body) {
  const board = await taskBoard(app, server);
  if (board.client.capabilities?.tasks?.requests?.tools?.call === undefined) {
    clear(body, remark("This server does not run calls as tasks."));
    return;
  }
  const tools = await board.client.list("tools/list", "tools");
  const able = tools.filter((tool) => ["optional", "required"].includes(tool.execution?.taskSupport));
  const list = h("ul", { class: "plain-list", "aria-label": "Tasks" });
  const empty = remark("No tasks yet.");
  const again = h("button", { type: "button", text: "Refresh" });
  const look = async () => {
    await board.load();
    for (const { taskId, status } of [...board.tasks.values()])
      if (!OVER.includes(status)) await board.refresh(taskId);
  };
  again.addEventListener("click", () => look().catch((error) => app.say(error.message)));
  const show = () => {
    clear(list, ...[...board.tasks.values()].reverse().map((task) => taskRow(app, board, task)));
    empty.hidden = board.tasks.size > 0;
  };
  clear(body, startForm(app, board, able), toolbar(h("h3", { text: "Started" }), again), empty, list);
  section.listen(board, "change", show);
  show();
  await board.load();
}

function startForm(app, board, tools) {
  const choice = h(
    "select",
    { id: "task-tool" },
    ...tools.map((tool) => h("option", { value: tool.name, text: visible(tool.title || tool.name, 200) })),
  );
  const form = h("schema-form", {});
  const start = h("button", { type: "button", class: "primary", text: "Start as task" });
  const answer = h("div", { "aria-live": "polite" });
  const chosen = () => tools.find((tool) => tool.name === choice.value);
  const show = () => form.show(chosen()?.inputSchema ?? { type: "object", properties: {} });
  const begin = async () => {
    if (start.disabled || form.validate().length > 0) return;
    start.disabled = true;
    try {
      if (!(await confirmCall(chosen(), form.value))) return;
      const result = await board.start(choice.value, form.value);
      clear(answer, result === null ? null : foldingJson(result));
      app.say(result === null ? "The task has started" : "The server answered at once");
    } catch (error) {
      clear(answer, problem(error));
    } finally {
      start.disabled = false;
    }
  };
  choice.addEventListener("change", show);
  start.addEventListener("click", begin);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    begin();
  });
  show();
  return h(
    "div",
    { class: "card" },
    h("div", { class: "field" }, h("label", { for: choice.id, text: "Tool" }), choice),
    form,
    toolbar(start),
    answer,
  );
}

function taskRow(app, board, task) {
  const isOver = OVER.includes(task.status);
  const doing = (work) => async (event) => {
    event.target.disabled = true;
    await work().catch((error) => app.say(error.message));
  };
  const cancel = h("button", {
    type: "button",
    class: "danger",
    text: "Cancel",
    on: { click: doing(() => board.cancel(task.taskId)) },
  });
  const follow = h("button", {
    type: "button",
    text: "Result",
    on: { click: doing(() => board.follow(task.taskId)) },
  });
  return h(
    "li",
    { class: "card", "data-task": task.taskId },
    toolbar(
      h("span", { class: `badge ${TASK_COLORS[task.status] ?? ""}`, text: visible(task.status ?? "", 50) }),
      h("strong", { text: visible(task.tool ?? "task", 200) }),
      h("code", { text: visible(task.taskId, 100) }),
      isOver ? null : cancel,
      isOver && task.result === undefined && task.error === undefined ? follow : null,
    ),
    task.statusMessage ? remark(visible(task.statusMessage, 1_000)) : null,
    task.error && task.status !== "cancelled" ? problem(task.error) : null,
    task.result === undefined
      ? null
      : h("details", { open: true }, h("summary", { text: "Result" }), foldingJson(task.result)),
  );
}
