// The transport of one session: HTTP requests to one URL, with the session's headers.

const BOTH_FORMS = "application/json, text/event-stream";

/** The reason why a request has no result: an error from the server, or a failure to reach it. */
export class McpError extends Error {
  constructor(code, message, data, status = 0) {
    super(message);
    this.name = "McpError";
    Object.assign(this, { code, data, status });
  }
}

/** The endpoint of a server, and the session with it once it exists. Errors are McpError or AbortError. */
export class HttpTransport {
  session = null;
  version = null;
  #url;
  #token;

  constructor(url, token) {
    this.#url = url;
    this.#token = token;
  }

  /** Sends a message. Returns the response if the server accepts it. */
  async post(message, signal) {
    const headers = this.#headers({ "Content-Type": "application/json", Accept: BOTH_FORMS });
    const response = await this.#reach({ method: "POST", headers, body: JSON.stringify(message), signal });
    if (message.method === "initialize" && response.ok) this.session = response.headers.get("mcp-session-id");
    return this.#accepted(response);
  }

  /** Opens a stream, which continues after the event with that id, if given; null if the server has none. */
  async get(lastEvent, signal) {
    const resumed = lastEvent ? { "Last-Event-ID": lastEvent } : {};
    const response = await this.#reach({
      headers: this.#headers({ Accept: "text/event-stream", ...resumed }),
      signal,
    });
    return response.status === 405 ? null : this.#accepted(response);
  }

  /** Ends the session, even if the page closes before the answer arrives. */
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

/** Returns true if a response is an event stream. */
export function isStream(response) {
  return (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
}

/** Waits; throws the reason of `signal` if it is aborted first. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}
