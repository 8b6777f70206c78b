// Resources: to find, read and watch.
import { h, clear, count, visible } from "../../common/web/dom.js";
import "../../common/web/diff.js";
import { choiceButton, choiceItems, choiceList, fitsFilter } from "./choices.js";
import { contentView } from "./contents.js";
import { unifiedDiff } from "./differences.js";
import { requestAndKeep } from "./history.js";
import { LiveSection } from "./lifetime.js";
import { argumentField, completions, fieldValues } from "./suggestions.js";
import { expandTemplate, templateVariables } from "./templates.js";
import { problem, remark, sides, toolbar } from "./pieces.js";

const SHOWN_TEMPLATES = 200;
const SHOWN_CONTENTS = 200;

/** The panel of a server's resources; `app.item` is the URI of the resource that is shown. */
export function resourcesPanel(app, server) {
  const section = new LiveSection();
  const reader = h("div", { class: "detail card" }, remark("Choose a resource to read it."));
  const open = (uri) => {
    clear(reader, resourceReader(app, server, uri, open));
    both.dataset.chosen = "";
  };
  // The forms of templates stay as they are while the list changes.
  const forms = new Map();
  const list = choiceList(app, server, section, {
    label: "resources",
    changed: "notifications/resources/list_changed",
    load: async (client) => ({
      resources: await client.list("resources/list", "resources"),
      templates: await client.list("resources/templates/list", "resourceTemplates"),
    }),
    view: ({ resources, templates }, wanted, client) => [
      resources.length + templates.length ? null : remark("This server has no resources."),
      ...choiceItems(resources, wanted, "Resources", (one) => resourceButton(one, open)),
      templates.length ? h("h3", { text: "Templates" }) : null,
      ...templates.slice(0, SHOWN_TEMPLATES).map((one) => {
        const key = JSON.stringify(one);
        if (!forms.has(key)) forms.set(key, templateForm(one, client, open));
        forms.get(key).hidden = !fitsFilter(one, wanted);
        return forms.get(key);
      }),
    ],
  });
  section.className = "panel";
  const both = sides(list, reader, () => delete both.dataset.chosen);
  section.append(h("h2", { text: "Resources" }), both);
  if (app.item) open(app.item);
  return section;
}

function resourceButton({ uri, title, name, mimeType, size }, open) {
  const facts = [mimeType, Number.isFinite(size) ? `${count(size)} B` : null].filter(Boolean).join(", ");
  return choiceButton(
    () => open(String(uri)),
    h("strong", { text: visible(title || name || uri, 200) }),
    h("code", { text: visible(uri, 300) }),
    h("span", { class: "muted", text: visible(facts, 200) }),
  );
}

function templateForm(template, client, open) {
  const pattern = String(template.uriTemplate ?? "");
  const reference = { type: "ref/resource", uri: pattern };
  const form = h("form", { "aria-label": visible(template.title || template.name || pattern, 200) });
  const canComplete = client?.capabilities?.completions !== undefined;
  const complete = (name, text) => completions(client, reference, name, text, fieldValues(form));
  const fields = templateVariables(pattern).map(({ name, whole, optional }) =>
    argumentField(
      { name, required: !optional, description: whole ? "As in a query: a=1&b=2" : "" },
      canComplete ? complete : null,
    ),
  );
  form.append(...fields, h("button", { type: "submit", text: "Read" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    open(expandTemplate(pattern, fieldValues(form)));
  });
  return h(
    "details",
    { class: "card" },
    h(
      "summary",
      {},
      h("strong", { text: visible(template.title || template.name || pattern, 200) }),
      " ",
      h("code", { text: visible(pattern, 300) }),
    ),
    template.description ? remark(visible(template.description, 2_000)) : null,
    form,
  );
}

/** One resource: its contents and, while it is watched, its changes. */
function resourceReader(app, server, uri, open) {
  const section = new LiveSection();
  const content = h("div", { "aria-busy": "true" });
  const change = h("div", { "aria-live": "polite" });
  const read = h("button", { type: "button", text: "Read again" });
  const watch = h("button", { type: "button", text: "Watch", "aria-pressed": "false" });
  const reading = new ResourceReading(app, server, uri, { content, change, open });
  let unwatch = null;
  read.addEventListener("click", () => reading.read());
  watch.addEventListener("click", async () => {
    watch.disabled = true;
    try {
      unwatch = unwatch ? unwatch() : await watchResource(app, server, uri, section, () => reading.read());
      watch.setAttribute("aria-pressed", String(Boolean(unwatch)));
      watch.textContent = unwatch ? "Watching" : "Watch";
      app.say(unwatch ? `Watching ${visible(uri, 200)}` : "No longer watching");
    } catch (error) {
      clear(change, problem(error));
    } finally {
      watch.disabled = false;
    }
  });
  section.append(h("h3", {}, h("code", { text: visible(uri, 1_000) })), toolbar(read, watch), change, content);
  app.client(server).then(
    (client) => {
      watch.hidden = client.capabilities?.resources?.subscribe !== true;
    },
    () => {},
  );
  reading.read();
  return section;
}

/** Subscribes until the section is left or the returned function is called. */
async function watchResource(app, server, uri, section, changed) {
  const client = await app.client(server);
  const heard = ({ detail }) => {
    const named = detail.params?.uri;
    // The notification may be for a part of the watched resource.
    const isIt = typeof named === "string" && (named === uri || named.startsWith(`${uri.replace(/\/$/, "")}/`));
    if (detail.method === "notifications/resources/updated" && isIt) changed();
  };
  client.addEventListener("notification", heard);
  try {
    await client.request("resources/subscribe", { uri });
  } catch (error) {
    client.removeEventListener("notification", heard);
    throw error;
  }
  const end = () => {
    client.removeEventListener("notification", heard);
    client.request("resources/unsubscribe", { uri }).catch(() => {});
  };
  const unwatch = section.onLeave(end);
  // The section was left before the server answered.
  if (!section.isConnected) unwatch();
  return unwatch;
}

/** Reads a resource, one read at a time, and shows the differences from the previous contents. */
class ResourceReading {
  #before = null;
  #isReading = false;
  #isStale = false;

  constructor(app, server, uri, places) {
    Object.assign(this, { app, server, uri, ...places });
  }

  async read() {
    this.#isStale = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#isStale) {
      this.#isStale = false;
      await this.#readOnce();
    }
    this.#isReading = false;
  }

  async #readOnce() {
    this.content.setAttribute("aria-busy", "true");
    try {
      const result = await requestAndKeep(this.app, this.server, "resources/read", { uri: this.uri });
      const contents = Array.isArray(result?.contents) ? result.contents : [];
      this.#show(contents);
    } catch (error) {
      clear(this.content, problem(error));
    }
    this.content.setAttribute("aria-busy", "false");
  }

  #show(contents) {
    const text = contents
      .map((one) =>
        typeof one.text === "string" ? one.text : `(binary, ${String(one.blob).length} letters of base64)`,
      )
      .join("\n");
    if (this.#before !== null && this.#before !== text) {
      const diff = h("diff-view", {});
      const at = new Date().toLocaleTimeString();
      clear(this.change, h("p", { class: "badge warn", text: `Changed at ${at}` }), diff);
      diff.show(unifiedDiff(this.#before, text));
    }
    this.#before = text;
    const many = contents.length > 1;
    const part = (one) => [many ? h("h4", {}, this.#link(one.uri)) : null, contentView(one)];
    clear(this.content, ...contents.slice(0, SHOWN_CONTENTS).flatMap(part));
    if (!contents.length) clear(this.content, remark("It is empty."));
  }

  #link(uri) {
    return h("button", {
      type: "button",
      class: "plain",
      text: visible(uri, 300),
      on: { click: () => this.open(String(uri)) },
    });
  }
}
