// JSON-RPC with the window around this page, by postMessage.
//
// The frame has no origin of its own and does not know the host's, so messages are sent to "*"; they contain only
// what the host sent. Only messages from the parent window are accepted. A request has no time limit: a host may
// first ask its user, who may take long. Requests that are open when the channel closes are rejected.

const METHOD_NOT_FOUND = -32601;
const HANDLER_FAILED = -32000;

/** The host answered with an error, does not support the request, or no longer exists. */
export class HostError extends Error {
  constructor(message, code = null) {
    super(message);
    this.name = "HostError";
    this.code = code;
  }
}

/** Requests and notifications to and from the parent window. */
export class Channel {
  #onNotification;
  #answers;
  #pending = new Map();
  #lastId = 0;
  #closed = false;
  #listener = (event) => this.#receive(event);

  /**
   * `onNotification(method, params)` receives notifications; `answers` has an asynchronous function for each method
   * that the host may request, `method: async (params) => result`.
   */
  constructor(onNotification, answers) {
    this.#onNotification = onNotification;
    this.#answers = new Map(Object.entries(answers));
    window.addEventListener("message", this.#listener);
  }

  /** Sends a request. Returns the result, or throws a HostError. */
  request(method, params = {}) {
    if (this.#closed) {
      return Promise.reject(new HostError("The host has closed this view."));
    }
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  /** Sends a notification. */
  notify(method, params = {}) {
    if (!this.#closed) {
      this.#send({ method, params });
    }
  }

  /** Stops receiving and requesting; open requests are rejected. Answers in progress are still sent. */
  close() {
    this.#closed = true;
    window.removeEventListener("message", this.#listener);
    for (const { reject } of this.#pending.values()) {
      reject(new HostError("The host has closed this view."));
    }
    this.#pending.clear();
  }

  #send(message) {
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  #receive(event) {
    const message = event.data;
    if (event.source !== window.parent || message?.jsonrpc !== "2.0") {
      return;
    }
    if (typeof message.method !== "string") {
      this.#settle(message);
    } else if (message.id === undefined) {
      this.#onNotification(message.method, message.params ?? {});
    } else {
      this.#answer(message);
    }
  }

  #settle({ id, result, error }) {
    const waiting = this.#pending.get(id);
    this.#pending.delete(id);
    if (error !== undefined) {
      waiting?.reject(new HostError(String(error?.message ?? "The host refused."), error?.code));
    } else {
      waiting?.resolve(result);
    }
  }

  async #answer({ id, method, params }) {
    const answer = this.#answers.get(method);
    if (answer === undefined) {
      this.#send({ id, error: { code: METHOD_NOT_FOUND, message: `Method not found: ${method.slice(0, 200)}` } });
      return;
    }
    try {
      this.#send({ id, result: await answer(params ?? {}) });
    } catch (error) {
      this.#send({ id, error: { code: HANDLER_FAILED, message: String(error?.message ?? error) } });
    }
  }
}
