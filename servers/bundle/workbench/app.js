// What all panels share: the servers, their sessions, the token, what was asked and what was said.
import { McpClient } from "./client.js";
import { MetricsFeed } from "./metrics.js";
import { History } from "./history.js";
import { MessageLog } from "./log.js";
import { askUser } from "./questions.js";

/** The state of the workbench. Events: `login` (detail the challenge of the answer), `servers`. */
export class WorkbenchApp extends EventTarget {
  /** The servers as `{name, path, state}`. */
  servers = [];
  /** The server that is shown, and the item of its panel. */
  current = null;
  item = null;
  /** The token, which is here and nowhere else: it is gone with the page. */
  token = null;
  history = new History();
  log = new MessageLog();
  metrics = new MetricsFeed(() => this.token);
  #clients = new Map();
  #say;

  /** `say` tells the user something that a screen reader reads out. */
  constructor(say) {
    super();
    this.#say = say;
    this.metrics.addEventListener("change", () => this.#take(this.metrics.servers));
    this.metrics.addEventListener("unauthorized", ({ detail }) => this.#ask(detail));
    addEventListener("pagehide", () => this.leave());
  }

  /** Says something short, for everybody. */
  say(text) {
    this.#say(text);
  }

  /** Shows what is at `hash`. */
  go(hash) {
    location.hash = hash;
  }

  /** The session with the server of that name, which is begun where there is none. */
  async client(name) {
    const server = this.servers.find((one) => one.name === name);
    if (!server) throw new Error(`there is no server ${name} here`);
    if (!this.#clients.has(name)) this.#clients.set(name, this.#newClient(server));
    const client = this.#clients.get(name);
    client.listens = name === this.current;
    await client.connect();
    return client;
  }

  /** Shows the server called `name`, or none; only that one is listened to. */
  enter(name) {
    this.current = name;
    for (const [other, client] of this.#clients) client.listens = other === name;
  }

  /** Uses `token` from now on; whether it is a good one. */
  async logIn(token) {
    this.token = token;
    return this.metrics.refresh();
  }

  /** Forgets the token, and whatever it has opened. */
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
