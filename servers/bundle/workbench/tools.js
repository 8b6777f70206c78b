// The tools of a server: a list, and a form for the selected one.
import { h, clear, visible } from "../../common/web/dom.js";
import { actionButton, folded, problem, remark, sides, toolbar } from "./pieces.js";
import { toolCall } from "./tool_call.js";
import { serverHash } from "./overview.js";

/** The panel of the tools of `server`; `app.item` is the name of the tool that is shown. */
export function toolsPanel(app, server) {
  const filter = h("input", { type: "search", placeholder: "Filter tools", "aria-label": "Filter tools" });
  const list = h("ul", { class: "plain-list tool-list", "aria-label": "Tools" });
  const detail = h("div", { class: "detail" });
  const names = h("nav", { "aria-label": "Tools" }, filter, list);
  const both = sides(names, detail, () => app.go(serverHash(server, "tools")));
  const panel = h("section", { class: "panel", "data-panel": "tools" }, both);
  const views = new Map();
  let tools = [];
  let last = null;
  const show = () => {
    const wanted = filter.value.toLowerCase();
    const found = tools.filter((tool) =>
      `${tool.name} ${tool.title ?? ""} ${tool.description ?? ""}`.toLowerCase().includes(wanted),
    );
    clear(list, ...found.map((tool) => toolLink(app, server, tool)));
    if (!found.length) {
      list.append(h("li", {}, remark(tools.length ? "No tool matches." : "The server has no tools.")));
    }
    both.toggleAttribute("data-chosen", Boolean(app.item));
    const tool = tools.find(({ name }) => name === (app.item ?? last)) ?? found[0] ?? tools[0];
    if (!tool) return;
    last = tool.name;
    if (!views.has(tool.name)) views.set(tool.name, toolView(app, server, tool));
    const view = views.get(tool.name);
    if (detail.firstChild !== view) clear(detail, view);
    for (const link of list.querySelectorAll("a")) {
      link.toggleAttribute("aria-current", false);
      if (link.dataset.tool === tool.name) link.setAttribute("aria-current", "true");
    }
  };
  const load = async () => {
    try {
      const client = await app.client(server);
      tools = await client.list("tools/list", "tools");
      show();
    } catch (error) {
      clear(detail, problem(error), actionButton("Try again", load));
    }
  };
  filter.addEventListener("input", show);
  panel.shown = () => tools.length && show();
  app.client(server).then(
    (client) => {
      client.addEventListener("notification", ({ detail: message }) => {
        if (message.method !== "notifications/tools/list_changed") return;
        views.clear();
        load();
      });
    },
    () => {},
  );
  clear(detail, remark("Loading…"));
  load();
  return panel;
}

function toolLink(app, server, tool) {
  const text = visible(tool.title || tool.annotations?.title || tool.name, 200);
  const kind = toolBadges(tool)[0];
  return h(
    "li",
    {},
    h(
      "a",
      { href: serverHash(server, "tools", tool.name), "data-tool": tool.name, class: "choice" },
      h("span", { text }),
      kind,
    ),
  );
}

/** The badges of a tool's annotations: whether it reads or changes. */
function toolBadges({ annotations = {}, execution }) {
  const badge = (text, kind = "") => h("span", { class: `badge ${kind}`, text });
  const changes = annotations?.destructiveHint === false ? badge("adds", "warn") : badge("changes", "danger");
  return [
    annotations?.readOnlyHint === true ? badge("reads", "ok") : changes,
    annotations?.openWorldHint === false ? null : badge("reaches out"),
    execution?.taskSupport && execution.taskSupport !== "forbidden" ? badge("task") : null,
  ].filter(Boolean);
}

/** The first paragraph, with the others folded. */
function description(text) {
  const [first, ...others] = text.split(/\n\s*\n/);
  const rest = () => h("p", { class: "description", text: others.join("\n\n") });
  return [h("p", { class: "description", text: first }), others.length ? folded("More", rest) : null].filter(Boolean);
}

function toolView(app, server, tool) {
  const title = visible(tool.title || tool.annotations?.title || tool.name, 200);
  return h(
    "article",
    { class: "tool", "data-tool": tool.name },
    toolbar(
      h("h3", { text: title }),
      title === tool.name ? null : h("code", { class: "muted", text: visible(tool.name, 200) }),
      ...toolBadges(tool),
    ),
    ...description(visible(tool.description ?? "", 5_000)),
    toolCall(app, server, tool),
  );
}
