// The view's side of MCP Apps: what a page in a host's frame asks of the host, and hears from it.
//
// Written after modelcontextprotocol/ext-apps, specification/2026-01-26/apps.mdx.

import { applyContext } from "./appearance.js";
import { Channel, HostError } from "./channel.js";

const SERVER_PREFIX = /^[A-Za-z0-9-]{1,32}__/;

/** The version of the protocol between view and host. */
export const APPS_VERSION = "2026-01-26";

/**
 * Connect with the host around this page: gives the `Host` after the handshake.
 *
 * Handlers get what arrived and the host: `onInput(arguments)`, `onPartialInput(arguments)`, `onResult(result)`,
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

/** All text of a tool's result, its blocks on lines of their own. */
export function resultText(result) {
  const blocks = Array.isArray(result?.content) ? result.content : [];
  return blocks.filter((block) => typeof block?.text === "string").map((block) => block.text).join("\n");
}

/** The host as the view sees it: what it can do, what it told of itself, and what may be asked of it. */
export class Host {
  #handlers;
  #channel;
  #observer = new ResizeObserver(() => this.#tellSize());
  #size = "";

  /** What the host told: its name and version, its capabilities, and the context that it may change. */
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

  /** Shake hands; from then on the host sends the tool's input and result. */
  async connect(appInfo, availableDisplayModes) {
    const parameters = { appInfo, appCapabilities: { availableDisplayModes }, protocolVersion: APPS_VERSION };
    const answer = await this.#channel.request("ui/initialize", parameters);
    this.info = answer?.hostInfo ?? {};
    this.capabilities = answer?.hostCapabilities ?? {};
    this.#take(answer?.hostContext);
    this.#channel.notify("ui/notifications/initialized");
    this.#observer.observe(document.documentElement);
    this.#observer.observe(document.body);
    // Told at once: nothing is observed in a frame that has no size yet.
    this.#tellSize();
  }

  /** Whether the host can do something, by the name of its capability: `serverTools`, `openLinks`, `message` ... */
  can(capability) {
    return Boolean(this.capabilities[capability]);
  }

  /** The name of the tool that this view was opened for; null if the host didn't tell. */
  get tool() {
    const name = this.context.toolInfo?.tool?.name;
    return typeof name === "string" ? name : null;
  }

  /** Call a tool of the server that the view is from, by its name there. A result with `isError` is a result. */
  callTool(name, args = {}) {
    return this.#channel.request("tools/call", { name: this.#nameHere(name), arguments: args });
  }

  // Where several servers are joined, a tool that is not the only one of its name has that of its server before it.
  #nameHere(name) {
    const [prefix] = SERVER_PREFIX.exec(this.tool ?? "") ?? [""];
    return name.startsWith(prefix) ? name : prefix + name;
  }

  /** Read a resource of the server that the view is from. */
  readResource(uri) {
    return this.#channel.request("resources/read", { uri });
  }

  /** Have the host open an address of the web. */
  async openLink(url) {
    if (!/^https?:\/\//i.test(url)) {
      throw new HostError(`not an address of the web: ${url.slice(0, 200)}`);
    }
    await this.#ask("ui/open-link", { url }, "open the link");
  }

  /** Put a message of the user into the conversation. */
  async sendMessage(text) {
    const content = [{ type: "text", text }];
    await this.#ask("ui/message", { role: "user", content }, "take the message");
  }

  /** Tell the model what the view shows now; it replaces what was told before. */
  async updateContext(text, structuredContent = undefined) {
    const content = [{ type: "text", text }];
    const context = structuredContent === undefined ? { content } : { content, structuredContent };
    await this.#ask("ui/update-model-context", context, "take the context");
  }

  /** Have the host save a file, which a frame can't do itself. */
  async downloadFile(name, mimeType, text) {
    const resource = { uri: `file:///${encodeURIComponent(name)}`, mimeType, text };
    await this.#ask("ui/download-file", { contents: [{ type: "resource", resource }] }, "save the file");
  }

  /** Whether the host could show the view so: "inline", "fullscreen" or "pip". */
  canDisplay(mode) {
    const modes = this.context.availableDisplayModes;
    return Array.isArray(modes) && modes.includes(mode);
  }

  /** Ask for another way to be shown; gives the one that the host chose. */
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
