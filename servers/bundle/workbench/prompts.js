// Prompts: a form for their arguments, and the rendered messages.
import { h, clear, visible } from "../../common/web/dom.js";
import { choiceButton, choiceItems, choiceList } from "./choices.js";
import { blockView } from "./contents.js";
import { requestAndKeep } from "./history.js";
import { LiveSection } from "./lifetime.js";
import { argumentField, completions, fieldValues } from "./suggestions.js";
import { serverHash } from "./overview.js";
import { problem, remark, sides, toolbar } from "./pieces.js";

const SHOWN_MESSAGES = 200;

/** The panel of a server's prompts. */
export function promptsPanel(app, server) {
  const section = new LiveSection();
  const detail = h("div", { class: "detail card" }, remark("Choose a prompt to fill it in."));
  const list = choiceList(app, server, section, {
    label: "prompts",
    changed: "notifications/prompts/list_changed",
    load: (client) => client.list("prompts/list", "prompts"),
    view: (prompts, wanted, client) => [
      prompts.length ? null : remark("This server has no prompts."),
      ...choiceItems(prompts, wanted, "Prompts", (one) => promptButton(one, () => choose(client, one))),
    ],
  });
  section.className = "panel";
  const both = sides(list, detail, () => delete both.dataset.chosen);
  const choose = (client, prompt) => {
    clear(detail, promptForm(app, server, client, prompt));
    both.dataset.chosen = "";
  };
  section.append(h("h2", { text: "Prompts" }), both);
  return section;
}

function promptButton(prompt, choose) {
  const title = h("strong", { text: visible(prompt.title || prompt.name, 200) });
  return choiceButton(choose, title, h("span", { class: "muted", text: visible(prompt.description ?? "", 300) }));
}

function promptForm(app, server, client, prompt) {
  const reference = { type: "ref/prompt", name: prompt.name };
  const form = h("form", { "aria-label": "Arguments" });
  const canComplete = client.capabilities?.completions !== undefined;
  const complete = (name, text) => completions(client, reference, name, text, fieldValues(form));
  const known = Array.isArray(prompt.arguments) ? prompt.arguments : [];
  const render = h("button", { type: "submit", text: "Render" });
  const answer = h("div", { "aria-live": "polite" });
  form.append(...known.map((one) => argumentField(one, canComplete ? complete : null)), toolbar(render));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    // An empty field means no argument, not an empty one.
    const given = Object.fromEntries(Object.entries(fieldValues(form)).filter(([, value]) => value !== ""));
    render.disabled = true;
    try {
      const result = await requestAndKeep(app, server, "prompts/get", { name: prompt.name, arguments: given });
      clear(answer, promptMessages(app, server, result));
    } catch (error) {
      clear(answer, problem(error));
    } finally {
      render.disabled = false;
    }
  });
  return h(
    "div",
    {},
    h("h3", { text: visible(prompt.title || prompt.name, 200) }),
    prompt.description ? remark(visible(prompt.description, 2_000)) : null,
    form,
    answer,
  );
}

function promptMessages(app, server, result) {
  const messages = Array.isArray(result?.messages) ? result.messages : [];
  const list = h("ol", { class: "plain-list", "aria-label": "Messages" });
  for (const message of messages.slice(0, SHOWN_MESSAGES)) {
    const place = h("li", { class: "card message", "data-role": visible(message.role, 50) });
    const open = (uri) => app.go(serverHash(server, "resources", uri));
    const blocks = Array.isArray(message.content) ? message.content : [message.content];
    place.append(
      h("span", { class: "badge", text: visible(message.role, 50) }),
      ...blocks.map((one) => blockView(one, open)),
    );
    list.append(place);
  }
  return list;
}
