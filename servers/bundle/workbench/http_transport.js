// What carries the messages of one session: HTTP requests to one URL, with the headers that name the session.

const BOTH_FORMS = "application/json, text/event-stream";

/** Why a request has no result: the error of the server, or what kept it from being asked. */
export class McpError extends Error {
  constructor(code, message, data, status = 0) {
    super(message);
    this.name = "McpError";
    Object.assign(this, { code, data, status });
  }
}

/** The endpoint of a server, and the session with it once there is one. Errors are McpError, or AbortError. */
export class HttpTransport {
  session = null;
  version = null;
  #url;
  #token;

  constructor(url, token) {
    this.#url = url;
    this.#token = token;
  }

  /** Sends a message; the response, where the server took it. */
  async post(message, signal) {
    const headers = this.#headers({ "Content-Type": "application/json", Accept: BOTH_FORMS });
    const response = await this.#reach({ method: "POST", headers, body: JSON.stringify(message), signal });
    if (message.method === "initialize" && response.ok) this.session = response.headers.get("mcp-session-id");
    return this.#accepted(response);
  }

  /** Opens a stream, which goes on after the event of that id, if there is one; null where the server has none. */
  async get(lastEvent, signal) {
    const resumed = lastEvent ? { "Last-Event-ID": lastEvent } : {};
    const response = await this.#reach({
      headers: this.#headers({ Accept: "text/event-stream", ...resumed }),
      signal,
    });
    return response.status === 405 ? null : this.#accepted(response);
  }

  /** Ends the session, also where the page is gone before the answer comes. */
  async end() {
    if (this.session === null) return;
    const headers = this.#headers();
    this.session = null;
    await this.#reach({ method: "DELETE", headers, keepalive: true }).catch(() => {});
  }

  #headers(more = {}) {
    return {
      ...(this.#token ? { Authorization: `Bearer ${this.#token}` } : {}),
      ...(this.session ? { "Mcp-Session-Id": this.session } : {}),
      ...(this.session && this.version ? { "MCP-Protocol-Version": this.version } : {}),
      ...more,
    };
  }

  async #reach(options) {
    const common = { credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer" };
    try {
      return await fetch(this.#url, { ...common, ...options });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new McpError(0, "the server can't be reached");
    }
  }

  async #accepted(response) {
    if (response.ok) return response;
    const said = await response.json().catch(() => null);
    const { code = 0, message = `HTTP status ${response.status}`, data } = said?.error ?? {};
    const error = new McpError(code, String(message), data, response.status);
    error.isSessionGone = response.status === 404 && this.session !== null;
    throw error;
  }
}

/** Whether a response is a stream of events. */
export function isStream(response) {
  return (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
}

/** Waits; ends early with the reason of `signal` where that is aborted. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}
