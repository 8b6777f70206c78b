// All servers, live: what is open in each, what it may change, and where to begin.
import { h, svg, clear, count, visible } from "../../common/web/dom.js";
import { quantile } from "./metrics.js";
import { lookAt } from "./glance.js";
import { LiveSection } from "./lifetime.js";
import { problem } from "./pieces.js";

const STATE_CLASSES = { ready: "ok", starting: "warn", failed: "danger", stopped: "danger", unreachable: "danger" };

/** The panel with all servers: state, contents, calls and latency. */
export function overviewPanel(app) {
  const list = h("ul", { class: "server-cards", "aria-label": "Servers" });
  const section = new LiveSection();
  section.className = "panel";
  section.append(h("header", { class: "toolbar" }, h("h2", { text: "Overview" })), list);
  const cards = new Map();
  const show = () => {
    const names = app.metrics.servers.map(({ name }) => name);
    if (names.join("\n") !== [...cards.keys()].join("\n")) {
      cards.clear();
      for (const name of names) cards.set(name, serverCard(app, name));
      clear(list, ...[...cards.values()].map(({ node }) => node));
    }
    for (const server of app.metrics.servers) cards.get(server.name).show(server);
  };
  section.listen(app.metrics, "change", show);
  show();
  return section;
}

/** The CSS class of the badge for a server's state. */
export function stateClass(state) {
  return `badge state ${STATE_CLASSES[state] ?? ""}`;
}

/** The address of a server's panels. */
export function serverHash(name, panel = "tools", item = "") {
  return `#/s/${encodeURIComponent(name)}/${panel}${item ? `/${encodeURIComponent(item)}` : ""}`;
}

function serverCard(app, name) {
  const state = h("span", {});
  const changes = h("span", {});
  const description = h("p", { class: "muted" });
  const facts = h("ul", { class: "plain-list facts", "aria-label": "What it has" });
  const begin = h("a", { class: "button", href: serverHash(name), text: "Open" });
  const line = svg("polyline", { class: "spark-line", points: "" });
  const spark = svg("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", role: "img" }, line);
  const figures = Object.fromEntries(
    ["Calls", "Errors", "Median", "95 %"].map((label) => [label, h("dd", { text: "–" })]),
  );
  const rows = Object.entries(figures).map(([label, value]) => h("div", {}, h("dt", { text: label }), value));
  const node = h(
    "li",
    { class: "card server-card", "data-server": name },
    h(
      "div",
      { class: "toolbar" },
      h("h3", {}, h("a", { href: serverHash(name), text: visible(name, 100) })),
      state,
      changes,
    ),
    description,
    facts,
    h("p", {}, begin),
    h("dl", { class: "figures" }, ...rows),
    spark,
  );
  let isAsked = false;
  const look = async () => {
    isAsked = true;
    try {
      const seen = await lookAt(await app.client(name));
      description.textContent = seen.description;
      changes.className = `badge ${seen.changes.kind}`;
      changes.textContent = seen.changes.text;
      begin.textContent = seen.beginning.text;
      begin.href = serverHash(name, seen.beginning.panel, seen.beginning.item);
      clear(facts, ...seen.facts.map((text) => h("li", { text })));
    } catch (error) {
      clear(facts, h("li", {}, problem(error)));
    }
  };
  return {
    node,
    show(server) {
      state.className = stateClass(server.state);
      state.textContent = server.state;
      if (server.state === "ready" && !isAsked) look();
      figures.Calls.textContent = count(server.calls);
      figures.Errors.textContent = count(server.errors);
      figures.Median.textContent = withinText(quantile(server.buckets, 0.5));
      figures["95 %"].textContent = withinText(quantile(server.buckets, 0.95));
      showRates(spark, line, server.rates);
    },
  };
}

function withinText(seconds) {
  if (seconds === null) return "–";
  if (seconds === Infinity) return "> 60 s";
  return seconds < 1 ? `≤ ${seconds * 1_000} ms` : `≤ ${seconds} s`;
}

function showRates(spark, line, rates) {
  const most = Math.max(1, ...rates);
  const step = 100 / Math.max(1, rates.length - 1);
  line.setAttribute("points", rates.map((rate, at) => `${at * step},${23 - (rate / most) * 22}`).join(" "));
  spark.setAttribute("aria-label", `${rates.at(-1).toFixed(1)} calls per second now, ${most.toFixed(1)} at most`);
}
