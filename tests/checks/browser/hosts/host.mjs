// A host of MCP Apps with nothing but the official parts: the TypeScript client, and the app-bridge of ext-apps. A page
// of the tests drives it through `window.host`.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  AppBridge,
  PostMessageTransport,
  RESOURCE_MIME_TYPE,
  getToolUiResourceUri,
} from "@modelcontextprotocol/ext-apps/app-bridge";

const EXTENSION = "io.modelcontextprotocol/ui";
const INFO = { name: "minimal-host", version: "1.0.0" };
const CAN = {
  openLinks: {},
  serverTools: {},
  serverResources: {},
  logging: {},
  message: { text: {} },
  updateModelContext: { text: {} },
};
const COLORS = {
  light: { "--color-background-primary": "#fdfcf8", "--color-text-primary": "#1b1a17" },
  dark: { "--color-background-primary": "#14171c", "--color-text-primary": "#e9ecf1" },
};

/** A client of one server, which shows the view of one tool. */
class Host {
  #client;
  #bridge;
  #frame;
  /** All requests and notifications of the view, in their order: [method, params]. */
  asked = [];

  /** Connects to a server, as a host that shows apps, or as one that does not. */
  async connect(url, { apps = true, token } = {}) {
    const extensions = apps ? { [EXTENSION]: { mimeTypes: [RESOURCE_MIME_TYPE] } } : undefined;
    this.#client = new Client(INFO, { capabilities: { extensions } });
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    await this.#client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
    return this.#client.getServerCapabilities();
  }

  async tools() {
    return (await this.#client.listTools()).tools;
  }

  async call(name, args) {
    return await this.#client.callTool({ name, arguments: args });
  }

  /** Calls a tool and shows its view, as hosts do: the view is up before the answer is there. */
  async open(name, args, { theme = "light" } = {}) {
    const tool = (await this.tools()).find((one) => one.name === name);
    const uri = getToolUiResourceUri(tool);
    if (!uri) throw new Error(`${name} has no view`);
    const [page] = (await this.#client.readResource({ uri })).contents;
    if (page.mimeType !== RESOURCE_MIME_TYPE) throw new Error(`${uri} is ${page.mimeType}`);
    await this.#show(page.text, tool, theme);
    await this.#bridge.sendToolInput({ arguments: args });
    const result = await this.call(name, args);
    await this.#bridge.sendToolResult(result);
    return { uri, meta: page._meta ?? null, size: new Blob([page.text]).size, result };
  }

  /** Changes the theme of a view that is shown. */
  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    this.#bridge.setHostContext(this.#context(theme));
  }

  /** Tells the view that its call was cancelled. */
  async cancel(reason) {
    await this.#bridge.sendToolCancelled({ reason });
  }

  /** Takes the view away, once it has said that it is done. */
  async close() {
    await this.#bridge.teardownResource({});
    this.#frame.remove();
  }

  #context(theme, tool) {
    const { clientWidth, clientHeight } = document.documentElement;
    return {
      theme,
      styles: { variables: COLORS[theme] },
      displayMode: "inline",
      availableDisplayModes: ["inline"],
      containerDimensions: { width: clientWidth, maxHeight: Math.max(clientHeight, 4_000) },
      locale: "en-US",
      timeZone: "UTC",
      platform: "web",
      ...(tool && { toolInfo: { tool } }),
    };
  }

  async #show(html, tool, theme) {
    document.documentElement.dataset.theme = theme;
    this.#frame = document.querySelector("iframe");
    this.#bridge = new AppBridge(this.#client, INFO, CAN, { hostContext: this.#context(theme, tool) });
    this.#grant();
    const sandbox = new Promise((resolve) => this.#bridge.addEventListener("sandboxready", resolve));
    const ready = new Promise((resolve) => this.#bridge.addEventListener("initialized", resolve));
    const inner = this.#frame.contentWindow;
    addEventListener("message", ({ source, data }) => {
      if (source === inner && data?.method) this.asked.push([data.method, data.params]);
    });
    await this.#bridge.connect(new PostMessageTransport(inner, inner));
    this.#frame.src = new URLSearchParams(location.search).get("sandbox");
    await sandbox;
    await this.#bridge.sendSandboxResourceReady({ html });
    await ready;
  }

  /** The bridge answers tools/call and resources/read by the client; what else a view may ask is granted here. */
  #grant() {
    this.#bridge.onopenlink = async () => ({});
    this.#bridge.onmessage = async () => ({});
    this.#bridge.onupdatemodelcontext = async () => ({});
    this.#bridge.addEventListener("sizechange", ({ height }) => {
      if (height !== undefined) this.#frame.style.height = `${height}px`;
    });
  }
}

window.host = new Host();
document.documentElement.dataset.ready = "true";
