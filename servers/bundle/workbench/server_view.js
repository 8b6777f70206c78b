// One server: its description and its panels.
import { h, clear, visible } from "../../common/web/dom.js";
import { actionButton, problem, remark } from "./pieces.js";
import { serverHash } from "./overview.js";
import { toolsPanel } from "./tools.js";
import { resourcesPanel } from "./resources.js";
import { promptsPanel } from "./prompts.js";
import { tasksPanel } from "./tasks.js";

const SERVER_PANELS = [
  { id: "tools", label: "Tools", make: toolsPanel, needs: "tools" },
  { id: "resources", label: "Resources", make: resourcesPanel, needs: "resources" },
  { id: "prompts", label: "Prompts", make: promptsPanel, needs: "prompts" },
  { id: "tasks", label: "Tasks", make: tasksPanel, needs: "tasks" },
];

/** The view of `server`; `view.open(panel)` shows one panel. */
export function serverView(app, server) {
  const head = h("header", { class: "server-head" }, h("h2", { text: visible(server, 100) }));
  const tabs = h("nav", { class: "tabs", "aria-label": "Parts of the server" });
  const place = h("div", { class: "panel-place" });
  const view = h("div", { class: "server-view", "data-server": server }, head, tabs, place);
  // Calls in a panel continue while another panel is shown.
  let tools = null;
  let shown = null;
  const open = async (wanted) => {
    shown = wanted;
    let client;
    try {
      if (!place.firstChild) clear(place, remark("Connecting…"));
      client = await app.client(server);
    } catch (error) {
      clear(
        place,
        problem(error),
        actionButton("Try again", () => open(wanted)),
      );
      return;
    }
    if (shown !== wanted || app.current !== server) return;
    showHead(head, server, client);
    const offered = SERVER_PANELS.filter(({ needs }) => client.capabilities[needs] !== undefined);
    const panel = offered.find(({ id }) => id === wanted) ?? offered[0];
    clear(tabs, ...offered.map((one) => panelLink(server, one, one === panel)));
    if (!panel) {
      clear(place, remark("The server offers nothing."));
    } else if (panel.id === "tools") {
      tools ??= toolsPanel(app, server);
      if (place.firstChild !== tools) clear(place, tools);
      tools.shown();
    } else {
      clear(place, panel.make(app, server));
    }
  };
  view.open = open;
  return view;
}

function panelLink(server, { id, label }, isCurrent) {
  return h("a", { href: serverHash(server, id), "aria-current": isCurrent ? "page" : null, text: label });
}

function showHead(head, server, { serverInfo, instructions, protocolVersion }) {
  const title = visible(serverInfo.title || serverInfo.name || server, 200);
  const name = `${visible(serverInfo.name ?? server, 100)} ${visible(serverInfo.version ?? "", 100)}`;
  const facts = `${name}, protocol ${visible(protocolVersion, 30)}`;
  const told = h(
    "details",
    {},
    h("summary", { text: "Instructions" }),
    h("p", { class: "description", text: visible(instructions, 10_000) }),
  );
  clear(
    head,
    h("div", { class: "toolbar" }, h("h2", { text: title }), h("span", { class: "muted", text: facts })),
    serverInfo.description ? h("p", { text: visible(serverInfo.description, 2_000) }) : null,
    instructions ? told : null,
  );
}
