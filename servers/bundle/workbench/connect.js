// The configuration that connects each client to the servers of this page.
import { h, clear } from "../../common/web/dom.js";
import { shellWord } from "./commands.js";
import { CLIENT_FORMS } from "./clients.js";
import { copyAndSay, remark } from "./pieces.js";

const TOKEN_VARIABLE = "MCP_TOKEN";
const LIFETIME =
  "These URLs work until the command that serves them ends, for example with Ctrl+C; `open` uses a different port " +
  "next time unless you set --port. For a permanent entry, let the client start the server itself: run " +
  "`mcp-server-bundle install` with the server's name and the arguments that it has here.";
const PLAIN_FORM = {
  title: "Other clients",
  key: "mcpServers",
  http: { url: "url", fixed: { type: "http" }, variable: "${}" },
};

/** The URL of a server of this page. */
export function serverUrl(app, name) {
  const path = app.servers.find((server) => server.name === name)?.path ?? `/${name}/mcp`;
  return new URL(path, window.location.origin).href;
}

/** The name of a server of this page in a client's file. Entries that start the server have another. */
export function entryName(name) {
  return `${name}-http`;
}

/** The form that most clients read: JSON with `servers`, each `{name, url}`; a variable replaces the token. */
export function plainConfiguration(servers, hasToken) {
  return clientConfiguration(PLAIN_FORM, servers, hasToken);
}

/** The text for a client's file. Clients without support for URLs start `connect`, which connects to the server. */
export function clientConfiguration(form, servers, hasToken) {
  const entries = servers.map(({ name, url }) => [name, clientEntry(form, url, hasToken)]);
  if (form.format === "toml")
    return entries.map(([name, entry]) => tomlTable(`${form.key}.${name}`, entry)).join("\n\n");
  return JSON.stringify({ [form.key]: Object.fromEntries(entries) }, null, 2);
}

function clientEntry({ http, stdio }, url, hasToken) {
  if (!http) {
    const token = hasToken ? ["--token-file", "/path/to/token"] : [];
    return { ...stdio, command: "/path/to/mcp-server-bundle", args: ["connect", url, ...token] };
  }
  const entry = { ...http.fixed, [http.url ?? "url"]: url };
  if (!hasToken) return entry;
  if (http.bearer) return { ...entry, [http.bearer]: TOKEN_VARIABLE };
  // A client without variables needs the token itself in its file.
  const token = http.variable?.replace("}", `${TOKEN_VARIABLE}}`) ?? "YOUR_TOKEN";
  return { ...entry, headers: { Authorization: `Bearer ${token}` } };
}

function tomlTable(name, entry) {
  const lines = Object.entries(entry).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return [`[${name}]`, ...lines].join("\n");
}

/** The panel that shows how to connect. */
export function connectPanel(app) {
  const choice = h("select", { id: "connect-server" });
  choice.append(h("option", { value: "", text: "all servers" }));
  choice.append(...app.servers.map(({ name }) => h("option", { value: name, text: name })));
  choice.value = app.current ?? "";
  const body = h("div", {});
  const show = () => {
    const names = choice.value ? [choice.value] : app.servers.map(({ name }) => name);
    const servers = names.map((name) => ({ name: entryName(name), url: serverUrl(app, name) }));
    clear(body, ...connectParts(app, servers));
  };
  choice.addEventListener("change", show);
  show();
  const label = h("label", { for: choice.id, text: "Server" });
  return h(
    "section",
    { class: "panel" },
    h("header", { class: "toolbar" }, h("h2", { text: "Connect" }), label, choice),
    body,
  );
}

function connectParts(app, servers) {
  const hasToken = Boolean(app.token);
  const [first] = servers;
  const login = servers.map(({ url }) => `mcp-server-bundle login ${shellWord(url)}`).join("\n");
  const option = hasToken ? ` --token-variable ${TOKEN_VARIABLE}` : "";
  const call = `mcp-server-bundle inspect ${shellWord(first.url)}${option}`;
  const token = hasToken
    ? `The servers require a token: put yours in the variable ${TOKEN_VARIABLE} in the client's environment.`
    : "The servers require no token from this page.";
  return [
    copyable(app, "URL", servers.map(({ url }) => url).join("\n"), "Transport: Streamable HTTP."),
    remark(LIFETIME),
    remark(token),
    ...CLIENT_FORMS.map((form) => clientPart(app, form, servers, hasToken)),
    copyablePart(
      app,
      PLAIN_FORM.title,
      plainConfiguration(servers, hasToken),
      "Many clients read JSON in this form.",
    ),
    copyablePart(app, "Terminal", call, "Without a client: use tools, resources and prompts from the command line."),
    copyablePart(
      app,
      "Log in",
      login,
      "If an issuer provides the tokens: clients log in there automatically, and so does this command.",
    ),
  ];
}

function clientPart(app, form, servers, hasToken) {
  const part = h("details", { class: "card", "data-client": form.name }, h("summary", { text: form.title }));
  const install = servers.map(({ name, url }) => installCommand(form, name, url, hasToken)).join("\n");
  part.append(
    copyable(app, "With a command, which shows the change first", install),
    copyable(app, `Or in ${form.path}`, clientConfiguration(form, servers, hasToken), afterwards(form)),
  );
  return part;
}

function afterwards({ http, renewal }) {
  const path = http ? "" : "`which mcp-server-bundle`, on Windows `where`, prints the path of the command. ";
  return `${path}Then ${renewal}.`;
}

function installCommand(form, name, url, hasToken) {
  const words = ["mcp-server-bundle", "install", "--url", url, "--name", name, "--client", form.name];
  // If the client supports no variables, `connect` reads the token from a file.
  const namesVariable = form.http && (form.http.variable || form.http.bearer);
  if (hasToken)
    words.push(...(namesVariable ? ["--token-variable", TOKEN_VARIABLE] : ["--token-file", "/path/to/token"]));
  return words.map(shellWord).join(" ");
}

function copyablePart(app, title, text, note) {
  return h("details", { class: "card" }, h("summary", { text: title }), copyable(app, title, text, note));
}

function copyable(app, title, text, note = "") {
  const copy = () => copyAndSay(app, text);
  return h(
    "figure",
    {},
    h(
      "figcaption",
      { class: "toolbar" },
      h("span", { text: title }),
      h("button", { type: "button", text: "Copy", "aria-label": `Copy: ${title}`, on: { click: copy } }),
    ),
    h("pre", { tabindex: "0", "aria-label": title, text }),
    note ? remark(note) : null,
  );
}
