// The frame of the workbench: the list of servers, the view for an address, the theme, and the login.
import { h, clear, visible } from "../../common/web/dom.js";
import { WorkbenchApp } from "./app.js";
import { connectPanel } from "./connect.js";
import { historyPanel } from "./history.js";
import { logPanel } from "./log.js";
import { loginForm } from "./login.js";
import { overviewPanel, serverHash, stateClass } from "./overview.js";
import { actionButton, remark } from "./pieces.js";
import { serverView } from "./server_view.js";

const APP_PANELS = [
  { id: "", label: "Overview", make: overviewPanel },
  { id: "connect", label: "Connect", make: connectPanel },
  { id: "history", label: "History", make: historyPanel },
  { id: "log", label: "Log", make: logPanel },
];
const THEMES = { "": "System", light: "Light", dark: "Dark" };
const THEME_KEY = "workbench-theme";

const spoken = h("p", { role: "status", class: "visually-hidden" });
const app = new WorkbenchApp((text) => (spoken.textContent = visible(text, 300)));
const pageLinks = h("nav", { class: "page-links", "aria-label": "Workbench" });
const serverLinks = h("nav", { class: "server-links", "aria-label": "Servers" });
const main = h("main", { id: "main", tabindex: "-1" });
const notice = h("p", { class: "notice error", role: "alert", hidden: true });
const logOut = actionButton("Log out", () => app.logOut());
const serverViews = new Map();
let isLocked = false;
let isStarted = false;

function startWorkbench() {
  const skip = actionButton("Skip to the content", () => main.focus(), "skip");
  logOut.hidden = true;
  document
    .getElementById("workbench")
    .append(
      skip,
      h(
        "header",
        { class: "page-head" },
        h("h1", { text: "Workbench" }),
        pageLinks,
        h("div", { class: "toolbar" }, themeChoice(), logOut),
      ),
      h("div", { class: "page-body" }, serverLinks, h("div", { class: "page-main" }, notice, main)),
      spoken,
    );
  clear(main, remark("Loading…"));
  app.addEventListener("servers", showServers);
  app.addEventListener("login", ({ detail }) => lock(detail));
  app.metrics.addEventListener("change", unlock);
  app.metrics.addEventListener("failure", ({ detail }) => showNotice(visible(detail, 500)));
  addEventListener("hashchange", showAddress);
  addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
  app.metrics.refresh();
}

function showServers() {
  const links = app.servers.map(({ name, state }) =>
    h(
      "a",
      { href: serverHash(name), "data-server": name },
      h(
        "span",
        { class: stateClass(state), title: state },
        h("span", { class: "visually-hidden", text: `${state}: ` }),
      ),
      h("span", { text: visible(name, 100) }),
    ),
  );
  clear(serverLinks, ...links);
  markLinks();
}

function lock(challenge) {
  isLocked = true;
  logOut.hidden = true;
  app.token = null;
  app.enter(null);
  serverViews.clear();
  showNotice("");
  clear(serverLinks);
  clear(pageLinks);
  clear(main, loginForm(app, challenge));
  document.getElementById("token").focus();
}

function unlock() {
  showNotice("");
  if (isStarted && !isLocked) return;
  isLocked = false;
  isStarted = true;
  logOut.hidden = app.token === null;
  showServers();
  showAddress();
}

function showNotice(text) {
  notice.textContent = text;
  notice.hidden = !text;
}

/** The parts of the address: `["s", server, panel, item]`, or the id of a panel. */
function addressParts() {
  try {
    return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return [""];
  }
}

function showAddress() {
  if (isLocked || !isStarted) return;
  const [first, server, panel = "tools", item] = addressParts();
  if (first === "s" && app.servers.some(({ name }) => name === server)) {
    app.enter(server);
    app.item = item ?? null;
    if (!serverViews.has(server)) serverViews.set(server, serverView(app, server));
    const view = serverViews.get(server);
    if (main.firstChild !== view) clear(main, view);
    view.open(panel);
    document.title = `${visible(server, 50)} – Workbench`;
  } else {
    const shown = APP_PANELS.find(({ id }) => id === first) ?? APP_PANELS[0];
    app.enter(null);
    clear(main, shown.make(app));
    document.title = `${shown.label} – Workbench`;
  }
  markLinks();
}

function markLinks() {
  const [first, server] = addressParts();
  const links = APP_PANELS.map(({ id, label }) => {
    const isHere =
      app.current === null && (id === first || (id === "" && !APP_PANELS.some((one) => one.id === first)));
    return h("a", { href: `#/${id}`, "aria-current": isHere ? "page" : null, text: label });
  });
  clear(pageLinks, ...links);
  for (const link of serverLinks.children) {
    if (first === "s" && link.dataset.server === server) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function themeChoice() {
  const choice = h("select", { "aria-label": "Theme" });
  choice.append(...Object.entries(THEMES).map(([value, text]) => h("option", { value, text })));
  choice.value = keptTheme();
  const show = () => {
    if (choice.value) document.documentElement.dataset.theme = choice.value;
    else delete document.documentElement.dataset.theme;
  };
  choice.addEventListener("change", () => {
    show();
    keepTheme(choice.value);
  });
  show();
  return choice;
}

function keptTheme() {
  try {
    const kept = localStorage.getItem(THEME_KEY) ?? "";
    return kept in THEMES ? kept : "";
  } catch {
    return "";
  }
}

function keepTheme(theme) {
  try {
    localStorage.setItem(THEME_KEY, theme);
  } catch {
    // So that choosing the same one again has an effect.
  }
}

startWorkbench();
