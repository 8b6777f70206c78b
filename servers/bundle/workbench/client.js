// An MCP client over Streamable HTTP: one session with one server.
import { HttpTransport, McpError } from "./http_transport.js";
import { ServerStream, readAnswer } from "./streams.js";

const HANDSHAKE_VERSION = "2025-11-25";
const MOST_PAGES = 200;
const UNKNOWN_METHOD = -32601;
const OWN_FAULT = -32603;

/**
 * A session. Events: `message` (detail: `{direction, message, at, server}`), `notification` (detail: the message),
 * `state` (detail: "connecting", "ready", "lost" or "closed"), `unauthorized`.
 */
export class McpClient extends EventTarget {
  serverInfo = null;
  capabilities = {};
  protocolVersion = null;
  instructions = "";
  /** Answers the server's requests: `async (message, signal) => result`. */
  questions = null;
  #http;
  #name;
  #connecting = null;
  #pending = new Map();
  #asked = new Map();
  #last = 0;
  #stream = null;
  #listens = false;
  #isClosed = false;

  constructor(url, { name, token = null }) {
    super();
    this.#http = new HttpTransport(url, token);
    this.#name = name;
  }

  /** Begins the session, unless it has begun. Throws McpError. */
  async connect() {
    this.#connecting ??= this.#handshake().catch((error) => {
      this.#connecting = null;
      this.#tell("lost");
      throw error;
    });
    return this.#connecting;
  }

  /** Whether the server's own messages are received. A browser allows few connections for all sessions. */
  set listens(wanted) {
    this.#listens = wanted;
    if (wanted) this.#stream?.open();
    else this.#stream?.close();
  }

  /** Returns the result of a request. `signal` cancels it, `onProgress` receives its progress, and `onMessage` the
   * messages sent and received for it. Throws McpError, or AbortError if it was cancelled. */
  async request(method, params = {}, options = {}) {
    await this.connect();
    const session = this.#http.session;
    try {
      return await this.#ask(method, params, options);
    } catch (error) {
      if (!(error.status === 404 && error.isSessionGone)) throw error;
    }
    // The server was restarted, or has ended the session.
    if (this.#http.session === session) this.#forget();
    await this.connect();
    return this.#ask(method, params, options);
  }

  /** Sends a notification to the server. Throws McpError if the server refuses it. */
  async notify(method, params) {
    const message = { jsonrpc: "2.0", method, ...(params ? { params } : {}) };
    this.#seen("sent", message);
    await this.#post(message);
  }

  /** Returns all entries that a method lists under `key`, page after page; an endless list is cut. */
  async list(method, key) {
    const items = [];
    let cursor;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const result = await this.request(method, cursor === undefined ? {} : { cursor });
      items.push(...(Array.isArray(result[key]) ? result[key].slice(0, 100_000) : []));
      cursor = result.nextCursor;
      if (typeof cursor !== "string") break;
    }
    return items;
  }

  /** Ends the session. */
  async close() {
    this.#isClosed = true;
    const ended = this.#http.end();
    this.#forget();
    this.#tell("closed");
    await ended;
  }

  async #handshake() {
    this.#tell("connecting");
    const result = await this.#ask("initialize", {
      protocolVersion: HANDSHAKE_VERSION,
      capabilities: { elicitation: { form: {}, url: {} }, sampling: {} },
      clientInfo: { name: "mcp-workbench", title: "Workbench", version: "1" },
    });
    this.serverInfo = result.serverInfo ?? {};
    this.capabilities = result.capabilities ?? {};
    this.protocolVersion = this.#http.version = String(result.protocolVersion);
    this.instructions = typeof result.instructions === "string" ? result.instructions : "";
    await this.notify("notifications/initialized");
    this.#tell("ready");
    this.#stream = new ServerStream(
      this.#http,
      (message) => this.#received(message),
      () => this.#forget(),
    );
    if (this.#listens) this.#stream.open();
  }

  async #ask(method, params, { onProgress, onMessage, signal } = {}) {
    signal?.throwIfAborted();
    const id = (this.#last += 1);
    const _meta = { ...params._meta, ...(onProgress ? { progressToken: id } : {}) };
    const message = { jsonrpc: "2.0", id, method, params: { ...params, ...(onProgress ? { _meta } : {}) } };
    const sending = new AbortController();
    const answer = new Promise((resolve, reject) =>
      this.#pending.set(id, { resolve, reject, onProgress, onMessage }),
    );
    const cancel = () => {
      this.#settle(id, ({ reject }) => reject(signal.reason));
      if (method !== "initialize") this.notify("notifications/cancelled", { requestId: id }).catch(() => {});
      sending.abort();
    };
    signal?.addEventListener("abort", cancel, { once: true });
    this.#seen("sent", message, this.#pending.get(id));
    this.#fetchAnswer(id, message, sending.signal).catch((error) => this.#settle(id, ({ reject }) => reject(error)));
    try {
      return await answer;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  async #fetchAnswer(id, message, signal) {
    const response = await this.#post(message, signal);
    const received = (one) => this.#received(one);
    await readAnswer(this.#http, response, signal, { received, isAnswered: () => !this.#pending.has(id) });
    this.#settle(id, ({ reject }) => reject(new McpError(0, "the server ended the connection without an answer")));
  }

  #received(message) {
    if (Array.isArray(message)) return message.forEach((one) => this.#received(one));
    const pending = this.#concerned(message);
    this.#seen("received", message, pending);
    if (message?.method !== undefined && message.id !== undefined) this.#answer(message);
    else if (message?.method !== undefined) this.#notified(message);
    else if (message?.error) {
      const { code, message: text, data } = message.error;
      this.#settle(message.id, ({ reject }) => reject(new McpError(code, String(text), data)));
    } else this.#settle(message?.id, ({ resolve }) => resolve(message.result ?? {}));
  }

  #concerned(message) {
    const isProgress = message?.method === "notifications/progress";
    return this.#pending.get(isProgress ? message.params?.progressToken : message?.id);
  }

  #notified(message) {
    const { method, params } = message;
    if (method === "notifications/progress") this.#pending.get(params?.progressToken)?.onProgress?.(params);
    if (method === "notifications/cancelled") this.#asked.get(params?.requestId)?.abort();
    this.dispatchEvent(new CustomEvent("notification", { detail: message }));
  }

  async #answer({ id, method, params }) {
    const asked = new AbortController();
    this.#asked.set(id, asked);
    let answer;
    try {
      answer = { result: await this.#resultOf({ id, method, params }, asked.signal) };
    } catch (error) {
      answer = { error: { code: error.code || OWN_FAULT, message: error.message } };
    }
    this.#asked.delete(id);
    if (asked.signal.aborted || this.#isClosed) return;
    const message = { jsonrpc: "2.0", id, ...answer };
    this.#seen("sent", message);
    await this.#post(message).catch(() => {});
  }

  #resultOf(message, signal) {
    if (message.method === "ping") return {};
    const isKnown = ["elicitation/create", "sampling/createMessage"].includes(message.method);
    if (!isKnown || !this.questions) throw new McpError(UNKNOWN_METHOD, "Method not found");
    return this.questions(message, signal);
  }

  #settle(id, how) {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (pending) how(pending);
  }

  #forget() {
    if (this.#http.session && !this.#isClosed) this.#tell("lost");
    this.#http.session = null;
    this.#connecting = null;
    this.#stream?.close();
    this.#stream = null;
  }

  #tell(state) {
    this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }

  #seen(direction, message, pending) {
    const detail = { direction, message, at: new Date(), server: this.#name };
    pending?.onMessage?.(message, direction);
    this.dispatchEvent(new CustomEvent("message", { detail }));
  }

  async #post(message, signal) {
    try {
      return await this.#http.post(message, signal);
    } catch (error) {
      if (error.status === 401) this.dispatchEvent(new Event("unauthorized"));
      throw error;
    }
  }
}
