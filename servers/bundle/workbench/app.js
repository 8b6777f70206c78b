// State shared by all panels: the servers, their sessions, the token, and past requests and answers.
import { McpClient } from "./client.js";
import { MetricsFeed } from "./metrics.js";
import { History } from "./history.js";
import { MessageLog } from "./log.js";
import { askUser } from "./questions.js";

/** The state of the workbench. Events: `login` (detail: the challenge in the answer), `servers`. */
export class WorkbenchApp extends EventTarget {
  /** The servers as `{name, path, state}`. */
  servers = [];
  /** The server that is shown, and the selected item of its panel. */
  current = null;
  item = null;
  /** The token. It is stored only here, so it is lost when the page closes. */
  token = null;
  history = new History();
  log = new MessageLog();
  metrics = new MetricsFeed(() => this.token);
  #clients = new Map();
  #say;

  /** `say` announces something to screen readers. */
  constructor(say) {
    super();
    this.#say = say;
    this.metrics.addEventListener("change", () => this.#take(this.metrics.servers));
    this.metrics.addEventListener("unauthorized", ({ detail }) => this.#ask(detail));
    addEventListener("pagehide", () => this.leave());
  }

  /** Shows and announces a short message. */
  say(text) {
    this.#say(text);
  }

  /** Shows the view for `hash`. */
  go(hash) {
    location.hash = hash;
  }

  /** Returns the session with the server of that name, and begins it if there is none. */
  async client(name) {
    const server = this.servers.find((one) => one.name === name);
    if (!server) throw new Error(`there is no server ${name} here`);
    if (!this.#clients.has(name)) this.#clients.set(name, this.#newClient(server));
    const client = this.#clients.get(name);
    client.listens = name === this.current;
    await client.connect();
    return client;
  }

  /** Shows the server called `name`, or none; only the shown server is listened to. */
  enter(name) {
    this.current = name;
    for (const [other, client] of this.#clients) client.listens = other === name;
  }

  /** Uses `token` from now on, whether or not it is valid. */
  async logIn(token) {
    this.token = token;
    return this.metrics.refresh();
  }

  /** Forgets the token, and ends everything that was opened with it. */
  logOut() {
    this.leave();
    this.token = null;
    this.history.clear();
    this.log.clear();
    this.servers = [];
    this.metrics.refresh();
  }

  /** Ends all sessions. */
  leave() {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  #newClient({ name, path }) {
    const client = new McpClient(path, { name, token: this.token });
    client.questions = (message, signal) => askUser(this, name, message, signal);
    client.addEventListener("message", ({ detail }) => this.log.add(detail));
    client.addEventListener("unauthorized", () => this.#ask(""));
    return client;
  }

  #ask(challenge) {
    this.leave();
    this.dispatchEvent(new CustomEvent("login", { detail: challenge }));
  }

  #take(servers) {
    const before = this.servers.map(({ name, state }) => `${name} ${state}`).join();
    this.servers = servers.map(({ name, path, state }) => ({ name, path, state }));
    const isNews = before !== this.servers.map(({ name, state }) => `${name} ${state}`).join();
    if (isNews) this.dispatchEvent(new Event("servers"));
  }
}
