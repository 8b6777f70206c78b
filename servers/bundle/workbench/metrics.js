// The servers' metrics from `/metrics`, polled while the page is visible.

const EVERY_MS = 2_000;
const MOST_SAMPLES = 30;
const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** The samples in a text in Prometheus format: `[{name, labels, value}]`. */
export function parseMetrics(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    const found = line.startsWith("#") ? null : SAMPLE.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(LABEL)) labels[name] = unescapedLabel(value);
    samples.push({ name: found[1], labels, value: Number(found[3]) });
  }
  return samples;
}

function unescapedLabel(value) {
  return value.replace(/\\(.)/g, (_, sign) => (sign === "n" ? "\n" : sign));
}

/** The state of each server: `{name, path, version, state, sessions, calls, errors, seconds, buckets}`. */
export function serversIn(samples) {
  const servers = new Map();
  for (const { labels } of samples.filter(({ name }) => name === "mcp_server_info")) {
    const known = { sessions: 0, calls: 0, errors: 0, answered: 0, seconds: 0, buckets: new Map(), up: 0 };
    servers.set(labels.server, {
      ...known,
      name: labels.server,
      path: labels.path,
      version: labels.version,
      state: "",
    });
  }
  for (const { name, labels, value } of samples) {
    const server = servers.get(labels.server);
    if (server) addSample(server, name, labels, value);
  }
  for (const server of servers.values()) if (server.state === "ready" && !server.up) server.state = "unreachable";
  return [...servers.values()];
}

function addSample(server, name, labels, value) {
  const isCall = labels.method === "tools/call";
  if (name === "mcp_server_state" && value === 1) server.state = labels.state;
  else if (name === "mcp_server_up") server.up = value;
  else if (name === "mcp_sessions") server.sessions = value;
  else if (name === "mcp_requests_total" && isCall) server.calls += value;
  else if (name === "mcp_request_errors_total" && isCall) server.errors += value;
  else if (name === "mcp_request_duration_seconds_sum" && isCall) server.seconds += value;
  else if (name === "mcp_request_duration_seconds_count" && isCall) server.answered += value;
  else if (name === "mcp_request_duration_seconds_bucket" && isCall) {
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    server.buckets.set(bound, (server.buckets.get(bound) ?? 0) + value);
  }
}

/** The maximum number of seconds for that share of the calls; null if there were none. */
export function quantile(buckets, part) {
  const bounds = [...buckets].sort(([one], [other]) => one - other);
  const total = bounds.at(-1)?.[1] ?? 0;
  if (!total) return null;
  return bounds.find(([, count]) => count >= part * total)[0];
}

/**
 * Polls while the page is visible. `servers` are the known servers, each with `rates`, the calls per second in the
 * last minute. Events: `change`, `unauthorized` (detail: the challenge in the answer), `failure` (detail: a text).
 */
export class MetricsFeed extends EventTarget {
  servers = [];
  #token;
  #timer = 0;
  #before = new Map();

  /** `token` returns the current token. */
  constructor(token) {
    super();
    this.#token = token;
    document.addEventListener("visibilitychange", () => this.#schedule());
  }

  /** Polls now, and then at intervals. Returns true if there was an answer. */
  async refresh() {
    clearTimeout(this.#timer);
    const isTold = await this.#ask();
    if (isTold) this.#schedule();
    return isTold;
  }

  #schedule() {
    clearTimeout(this.#timer);
    if (!document.hidden) this.#timer = setTimeout(() => this.refresh(), EVERY_MS);
  }

  async #ask() {
    const token = this.#token();
    const headers = { Accept: "text/plain", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    let response;
    try {
      response = await fetch("/metrics", { headers, credentials: "omit", cache: "no-store", redirect: "error" });
    } catch {
      this.#schedule();
      return this.#fail("The servers can't be reached. Trying again in a moment.");
    }
    if (response.status === 401) {
      const challenge = response.headers.get("www-authenticate") ?? "";
      this.dispatchEvent(new CustomEvent("unauthorized", { detail: challenge }));
      return false;
    }
    if (!response.ok) {
      const said = await response.json().catch(() => null);
      this.#schedule();
      return this.#fail(String(said?.error?.message ?? `HTTP status ${response.status}`));
    }
    this.#take(serversIn(parseMetrics(await response.text())));
    return true;
  }

  #fail(reason) {
    this.dispatchEvent(new CustomEvent("failure", { detail: reason }));
    return false;
  }

  #take(servers) {
    const now = performance.now();
    for (const server of servers) {
      const before = this.#before.get(server.name);
      const seconds = before ? (now - before.at) / 1_000 : 0;
      const rate = seconds ? Math.max(0, server.calls - before.calls) / seconds : 0;
      server.rates = [...(before?.rates ?? []), rate].slice(-MOST_SAMPLES);
      this.#before.set(server.name, { at: now, calls: server.calls, rates: server.rates });
    }
    this.servers = servers;
    this.dispatchEvent(new Event("change"));
  }
}
