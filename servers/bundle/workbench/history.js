// Past requests to the servers, to repeat or to copy.
import { h, clear, visible } from "../../common/web/dom.js";
import { bundleCommand, curlCommand } from "./commands.js";
import { confirmCall } from "./confirm.js";
import { foldingJson } from "./contents.js";
import { LiveSection } from "./lifetime.js";
import { entryName, plainConfiguration, serverUrl } from "./connect.js";
import { actionButton, copyAndSay, folded, problem, remark, toolbar } from "./pieces.js";

const MOST_KEPT_REQUESTS = 200;

/** The requests of this page, newest first, in memory only. They contain the params, never a token. */
export class History extends EventTarget {
  entries = [];

  /** Stores one request: `{server, method, params, at, elapsed, ok}`. */
  add({ server, method, params, at, elapsed, ok }) {
    const { _meta, ...kept } = params ?? {};
    this.entries.unshift({ server, method, params: kept, at, elapsed, ok });
    this.entries.length = Math.min(this.entries.length, MOST_KEPT_REQUESTS);
    this.dispatchEvent(new Event("change"));
  }

  /** Deletes everything. */
  clear() {
    this.entries = [];
    this.dispatchEvent(new Event("change"));
  }
}

/** Sends a request and stores it in the history. Returns the result, or throws. */
export function requestAndKeep(app, server, method, params, options) {
  const keep = (outcome) => app.history.add({ server, method, params, ...outcome });
  return requestTimed(app, { server, method, params }, keep, options);
}

/** Sends a request, and passes its time, its duration and its success to `keep`. */
async function requestTimed(app, { server, method, params }, keep, options) {
  const client = await app.client(server);
  const at = new Date();
  const started = performance.now();
  const outcome = (ok) => ({ at, elapsed: performance.now() - started, ok });
  try {
    const result = await client.request(method, params, options);
    keep(outcome(result?.isError !== true));
    return result;
  } catch (error) {
    keep(outcome(false));
    throw error;
  }
}

/** The history panel. */
export function historyPanel(app) {
  const list = h("ol", { class: "plain-list", "aria-label": "Requests, newest first" });
  const empty = remark("No requests yet: calls, reads and prompts appear here.");
  const forget = actionButton("Clear", () => app.history.clear());
  const section = new LiveSection();
  section.className = "panel";
  section.append(h("header", { class: "toolbar" }, h("h2", { text: "History" }), forget), empty, list);
  const rows = new Map();
  const show = () => {
    const { entries } = app.history;
    for (const entry of entries) if (!rows.has(entry)) rows.set(entry, historyRow(app, entry));
    for (const entry of rows.keys()) if (!entries.includes(entry)) rows.delete(entry);
    clear(list, ...entries.map((entry) => rows.get(entry)));
    empty.hidden = entries.length > 0;
    forget.disabled = entries.length === 0;
  };
  section.listen(app.history, "change", show);
  show();
  return section;
}

function historyRow(app, entry) {
  const { server, method, params } = entry;
  const name = params.name ?? params.uri ?? "";
  const asked = argumentsLine(params.arguments);
  const badge = h("span", {});
  const facts = h("span", { class: "muted" });
  const answer = h("div", { class: "answer" });
  const showFacts = () => {
    badge.className = `badge ${entry.ok ? "ok" : "danger"}`;
    badge.textContent = entry.ok ? "done" : "failed";
    facts.textContent = `${entry.at.toLocaleTimeString()}, ${Math.round(entry.elapsed)} ms`;
  };
  const again = actionButton("Repeat", async () => {
    again.disabled = true;
    clear(answer, await repeatEntry(app, entry));
    again.disabled = false;
    showFacts();
  });
  showFacts();
  return h(
    "li",
    { class: "card" },
    toolbar(badge, h("strong", { text: visible(`${server}: ${method} ${name}`, 300) }), facts),
    asked ? h("p", {}, h("code", { text: visible(asked, 300) })) : null,
    folded("Parameters", () => foldingJson(params)),
    toolbar(again, ...copyButtons(app, entry)),
    answer,
  );
}

/** The arguments on one line, as on a command line: `query=SELECT 1 max_rows=5`. */
function argumentsLine(given) {
  const text = (value) => (typeof value === "string" ? value.replace(/\s+/g, " ") : JSON.stringify(value));
  return Object.entries(given ?? {})
    .map(([name, value]) => `${name}=${text(value)}`)
    .join(" ");
}

function copyButtons(app, entry) {
  const url = serverUrl(app, entry.server);
  const hasToken = Boolean(app.token);
  const command = bundleCommand(url, entry, hasToken);
  const curl = async () => curlCommand(url, entry, { hasToken, schema: (await calledTool(app, entry))?.inputSchema });
  const configuration = () => plainConfiguration([{ name: entryName(entry.server), url }], hasToken);
  return [
    // Some requests have no command, and some names can't be written on a command line.
    command === null ? null : actionButton("Copy as command", () => copyAndSay(app, command)),
    actionButton("Copy as curl", () => copyMade(app, curl)),
    actionButton("Copy configuration", () => copyMade(app, configuration)),
  ];
}

async function copyMade(app, make) {
  try {
    await copyAndSay(app, await make());
  } catch (error) {
    app.say(error.message);
  }
}

/** The tool that an entry calls, as the server lists it; undefined for other requests. */
async function calledTool(app, { server, method, params }) {
  if (method !== "tools/call") return undefined;
  const tools = await (await app.client(server)).list("tools/list", "tools");
  return tools.find((tool) => tool.name === params.name);
}

/** Sends the request of an entry again. Returns the element that shows the answer. */
async function repeatEntry(app, entry) {
  try {
    const tool = (await calledTool(app, entry)) ?? { name: entry.params.name };
    if (entry.method === "tools/call" && !(await confirmCall(tool, entry.params.arguments))) return null;
    const result = await requestTimed(app, entry, (outcome) => Object.assign(entry, outcome));
    app.say(`${entry.method} was repeated`);
    return foldingJson(result);
  } catch (error) {
    app.say(`${entry.method} failed`);
    return problem(error);
  }
}
