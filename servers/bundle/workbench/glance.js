// A server at a glance: what is open, what may be changed, and where to begin.
import { count, visible } from "../../common/web/dom.js";

const NAMES_SHOWN = 5;
const DIRECTORIES_SHOWN = 3;
const DIRECTORIES_TOOL = "list_allowed_directories";

/** Where to begin with a server that has such a tool. */
const BEGINNINGS = [
  { tool: DIRECTORIES_TOOL, text: "Browse files", panel: "resources" },
  { tool: "read_query", text: "Run SQL", panel: "tools", item: "read_query" },
  { tool: "fetch", text: "Read a page", panel: "tools", item: "fetch" },
];

/** Returns `{title, description, changes, facts, beginning}` of a server. Throws McpError if it does not answer. */
export async function lookAt(client) {
  await client.connect();
  const { serverInfo, capabilities } = client;
  const list = (method, key, needs) => (capabilities[needs] ? client.list(method, key) : []);
  const [tools, resources, prompts] = await Promise.all([
    list("tools/list", "tools", "tools"),
    list("resources/list", "resources", "resources"),
    list("prompts/list", "prompts", "prompts"),
  ]);
  // The user has not requested this call, so it must only read.
  const reads = ({ name, annotations }) => name === DIRECTORIES_TOOL && annotations?.readOnlyHint === true;
  const directories = tools.some(reads) ? await allowedDirectories(client) : [];
  return {
    title: visible(serverInfo.title || serverInfo.name, 100),
    description: visible(serverInfo.description ?? "", 300),
    changes: strongestChange(tools),
    facts: [...directories, listed(tools, "tool"), listed(resources, "resource"), listed(prompts, "prompt")].filter(
      Boolean,
    ),
    beginning: beginningOf(tools, prompts),
  };
}

async function allowedDirectories(client) {
  const { content } = await client.request("tools/call", { name: DIRECTORIES_TOOL, arguments: {} });
  const [, ...directories] = String(content?.[0]?.text ?? "").split("\n");
  const more = directories.length - DIRECTORIES_SHOWN;
  const shown = directories.slice(0, DIRECTORIES_SHOWN).map((text) => visible(text, 200));
  return more > 0 ? [...shown, `and ${count(more)} more directories`] : shown;
}

/** The most that any of the tools may do: `{text, kind}`, as on its badge. */
function strongestChange(tools) {
  const changing = tools.filter(({ annotations }) => annotations?.readOnlyHint !== true);
  if (!changing.length) return { text: "changes nothing", kind: "ok" };
  const onlyAdds = changing.every(({ annotations }) => annotations?.destructiveHint === false);
  return onlyAdds ? { text: "only adds", kind: "warn" } : { text: "may change things", kind: "danger" };
}

function listed(items, noun) {
  if (!items.length) return null;
  const names = items.slice(0, NAMES_SHOWN).map(({ title, name }) => visible(title || name, 60));
  const more = items.length > NAMES_SHOWN ? ", …" : "";
  return `${count(items.length)} ${noun}${items.length === 1 ? "" : "s"}: ${names.join(", ")}${more}`;
}

function beginningOf(tools, prompts) {
  const known = BEGINNINGS.find(({ tool }) => tools.some(({ name }) => name === tool));
  if (known) return known;
  if (prompts.length) return { text: "Try a prompt", panel: "prompts" };
  return tools.length ? { text: "Call a tool", panel: "tools" } : { text: "Open", panel: "resources" };
}
