// A list to choose from, which follows the server's notifications.
import { h, clear, count } from "../../common/web/dom.js";
import { actionButton, problem, remark, toolbar } from "./pieces.js";

const SHOWN_CHOICES = 200;

/**
 * The list, with a filter. `load(client)` requests its contents, and `view(found, filter, client)` returns the
 * element that shows them. After a `changed` notification they are requested again, while `section` is on the page.
 */
export function choiceList(app, server, section, { label, changed, load, view }) {
  const name = `Filter ${label}`;
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": name, autocomplete: "off" });
  const list = h("div", {}, remark("Loading…"));
  let client;
  let found;
  const show = () => clear(list, ...view(found, filter.value.trim().toLowerCase(), client));
  const look = async () => {
    try {
      client ??= await listened(app, server, section, changed, look);
      found = await load(client);
      show();
    } catch (error) {
      clear(list, problem(error));
    }
  };
  filter.addEventListener("input", () => found && show());
  look();
  return h("div", { class: "choices" }, toolbar(filter, actionButton("Refresh", look)), list);
}

async function listened(app, server, section, changed, look) {
  const client = await app.client(server);
  section.listen(client, "notification", ({ detail }) => {
    if (detail.method === changed) look();
  });
  return client;
}

/** The `items` with a text that contains `wanted`, as a list of `item(one)`; if it is cut, a note says so. */
export function choiceItems(items, wanted, label, item) {
  const found = items.filter((one) => fitsFilter(one, wanted));
  const more = found.length - SHOWN_CHOICES;
  return [
    h(
      "ul",
      { class: "plain-list", "aria-label": label },
      ...found.slice(0, SHOWN_CHOICES).map((one) => h("li", {}, item(one))),
    ),
    more > 0 ? remark(`And ${count(more)} more: type to narrow the list.`) : null,
    found.length || !wanted ? null : remark("Nothing matches."),
  ];
}

/** Returns true if one of the texts contains `wanted`. */
export function fitsFilter(one, wanted) {
  const texts = [one.name, one.title, one.description, one.uri, one.uriTemplate];
  return texts.some((text) =>
    String(text ?? "")
      .toLowerCase()
      .includes(wanted),
  );
}

/** A button with `parts` in it, marked as selected when it is pressed. */
export function choiceButton(choose, ...parts) {
  const button = h("button", { type: "button", class: "plain choice" }, ...parts);
  button.addEventListener("click", () => {
    for (const one of button.closest(".choices").querySelectorAll("[aria-current]"))
      one.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    choose();
  });
  return button;
}
