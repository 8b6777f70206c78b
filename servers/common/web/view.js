// The view's side of MCP Apps: the requests of a page in a host's frame, and the host's notifications.
//
// Written after modelcontextprotocol/ext-apps, specification/2026-01-26/apps.mdx.

import { applyContext } from "./appearance.js";
import { Channel, HostError } from "./channel.js";

const SERVER_PREFIX = /^[A-Za-z0-9-]{1,32}__/;

/** The version of the protocol between view and host. */
export const APPS_VERSION = "2026-01-26";

/**
 * Connects to the host around this page. Returns the `Host` after the handshake.
 *
 * Handlers receive the data and the host: `onInput(arguments)`, `onPartialInput(arguments)`, `onResult(result)`,
 * `onCancelled(reason)`, `onContext(context)` and `onTeardown()`, which may be asynchronous. All are optional.
 */
export async function connectHost({ name, version, title, displayModes = ["inline", "fullscreen"], ...handlers }) {
  if (window.parent === window) {
    throw new HostError("This page is an MCP Apps view: it works only inside a host.");
  }
  const host = new Host(handlers);
  await host.connect({ name, version, ...(title ? { title } : {}) }, displayModes);
  return host;
}

/** All text of a tool's result, with each block on its own lines. */
export function resultText(result) {
  const blocks = Array.isArray(result?.content) ? result.content : [];
  return blocks.filter((block) => typeof block?.text === "string").map((block) => block.text).join("\n");
}

/** The host from the view's side: its capabilities, its description of itself, and the requests to it. */
export class Host {
  #handlers;
  #channel;
  #observer = new ResizeObserver(() => this.#tellSize());
  #size = "";

  /** The host's description: its name and version, its capabilities, and the context, which may change. */
  info = {};
  capabilities = {};
  context = {};

  constructor(handlers = {}) {
    this.#handlers = handlers;
    this.#channel = new Channel((method, params) => this.#notice(method, params), {
      "ping": async () => ({}),
      "ui/resource-teardown": () => this.#end(),
    });
  }

  /** Performs the handshake; afterwards the host sends the tool's input and result. */
  async connect(appInfo, availableDisplayModes) {
    const parameters = { appInfo, appCapabilities: { availableDisplayModes }, protocolVersion: APPS_VERSION };
    const answer = await this.#channel.request("ui/initialize", parameters);
    this.info = answer?.hostInfo ?? {};
    this.capabilities = answer?.hostCapabilities ?? {};
    this.#take(answer?.hostContext);
    this.#channel.notify("ui/notifications/initialized");
    this.#observer.observe(document.documentElement);
    this.#observer.observe(document.body);
    // Reported at once, since nothing is observed in a frame that has no size yet.
    this.#tellSize();
  }

  /** Returns true if the host has a capability: `serverTools`, `openLinks`, `message` ... */
  can(capability) {
    return Boolean(this.capabilities[capability]);
  }

  /** The name of the tool that this view was opened for; null if the host did not send it. */
  get tool() {
    const name = this.context.toolInfo?.tool?.name;
    return typeof name === "string" ? name : null;
  }

  /** Calls a tool of the view's server, by its name there. A result with `isError` is returned, too. */
  callTool(name, args = {}) {
    return this.#channel.request("tools/call", { name: this.#nameHere(name), arguments: args });
  }

  // If several servers are joined, a tool whose name is not unique is prefixed with its server's name.
  #nameHere(name) {
    const [prefix] = SERVER_PREFIX.exec(this.tool ?? "") ?? [""];
    return name.startsWith(prefix) ? name : prefix + name;
  }

  /** Reads a resource of the view's server. */
  readResource(uri) {
    return this.#channel.request("resources/read", { uri });
  }

  /** Asks the host to open a web address. */
  async openLink(url) {
    if (!/^https?:\/\//i.test(url)) {
      throw new HostError(`not an address of the web: ${url.slice(0, 200)}`);
    }
    await this.#ask("ui/open-link", { url }, "open the link");
  }

  /** Adds a message from the user to the conversation. */
  async sendMessage(text) {
    const content = [{ type: "text", text }];
    await this.#ask("ui/message", { role: "user", content }, "take the message");
  }

  /** Tells the model what the view shows now; this replaces earlier reports. */
  async updateContext(text, structuredContent = undefined) {
    const content = [{ type: "text", text }];
    const context = structuredContent === undefined ? { content } : { content, structuredContent };
    await this.#ask("ui/update-model-context", context, "take the context");
  }

  /** Asks the host to save a file, which a frame can't do itself. */
  async downloadFile(name, mimeType, text) {
    const resource = { uri: `file:///${encodeURIComponent(name)}`, mimeType, text };
    await this.#ask("ui/download-file", { contents: [{ type: "resource", resource }] }, "save the file");
  }

  /** Returns true if the host supports the display mode: "inline", "fullscreen" or "pip". */
  canDisplay(mode) {
    const modes = this.context.availableDisplayModes;
    return Array.isArray(modes) && modes.includes(mode);
  }

  /** Requests another display mode. Returns the one that the host has chosen. */
  async display(mode) {
    const answer = await this.#channel.request("ui/request-display-mode", { mode });
    this.#change({ displayMode: answer?.mode ?? this.context.displayMode });
    return this.context.displayMode;
  }

  async #ask(method, params, what) {
    const answer = await this.#channel.request(method, params);
    if (answer?.isError) {
      throw new HostError(`The host did not ${what}.`);
    }
  }

  #notice(method, params) {
    const handlers = this.#handlers;
    if (method === "ui/notifications/tool-input") {
      handlers.onInput?.(params.arguments ?? {}, this);
    } else if (method === "ui/notifications/tool-input-partial") {
      handlers.onPartialInput?.(params.arguments ?? {}, this);
    } else if (method === "ui/notifications/tool-result") {
      handlers.onResult?.(params, this);
    } else if (method === "ui/notifications/tool-cancelled") {
      handlers.onCancelled?.(String(params.reason ?? ""), this);
    } else if (method === "ui/notifications/host-context-changed") {
      this.#change(params);
    }
  }

  #change(changes) {
    this.#take(changes);
    this.#handlers.onContext?.(this.context, this);
  }

  #take(changes) {
    this.context = { ...this.context, ...changes };
    applyContext(this.context);
  }

  #tellSize() {
    const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
    const width = Math.ceil(window.innerWidth);
    if (this.#size !== `${width} ${height}`) {
      this.#size = `${width} ${height}`;
      this.#channel.notify("ui/notifications/size-changed", { width, height });
    }
  }

  async #end() {
    this.#observer.disconnect();
    try {
      await this.#handlers.onTeardown?.(this);
    } finally {
      this.#channel.close();
    }
    return {};
  }
}
