// What a server suggests for a field while somebody types in it.
import { h, clear, visible } from "../../common/web/dom.js";

const MOST_SUGGESTIONS = 100;
let suggestionLists = 0;

/**
 * Has `input` suggest what `ask(text)` gives. One request is under way at a time: what is typed meanwhile is asked
 * for when its answer is there. The list stands beside the input.
 */
export function suggest(input, ask) {
  const list = h("datalist", { id: `suggestions-${(suggestionLists += 1)}` });
  input.setAttribute("list", list.id);
  input.setAttribute("autocomplete", "off");
  let isAsking = false;
  let isRefused = false;
  const look = async () => {
    if (isAsking || isRefused) return;
    isAsking = true;
    let asked;
    try {
      do {
        asked = input.value;
        const values = (await ask(asked)).filter((value) => typeof value === "string");
        const options = values.slice(0, MOST_SUGGESTIONS).map((value) => h("option", { value }));
        clear(list, ...options);
      } while (input.value !== asked);
    } catch {
      // A field works without suggestions as well.
      isRefused = true;
    } finally {
      isAsking = false;
    }
  };
  input.addEventListener("focus", look);
  input.addEventListener("input", look);
  return list;
}

/** A labelled field for one argument, which suggests what `complete(name, text)` gives, if there is that. */
export function argumentField({ name, title, description, required }, complete) {
  const id = `argument-${(suggestionLists += 1)}`;
  const hint = description ? h("small", { id: `${id}-hint`, class: "muted", text: visible(description, 500) }) : null;
  const input = h("input", { id, name, type: "text", required: Boolean(required) });
  if (hint) input.setAttribute("aria-describedby", hint.id);
  const label = h("label", { for: id, text: visible(title || name, 200) });
  if (required) label.append(h("span", { class: "muted", text: " (required)" }));
  const list = complete ? suggest(input, (text) => complete(name, text)) : null;
  return h("div", { class: "field" }, label, input, hint, list);
}

/** What `completion/complete` suggests for the argument `name` of `reference`, where `settled()` is given already. */
export async function completions(client, reference, name, value, settled) {
  const context = Object.entries(settled).filter(([key, given]) => key !== name && given !== "");
  const result = await client.request("completion/complete", {
    ref: reference,
    argument: { name, value },
    ...(context.length ? { context: { arguments: Object.fromEntries(context) } } : {}),
  });
  return Array.isArray(result?.completion?.values) ? result.completion.values : [];
}

/** What stands in the fields of a form, by their names. */
export function fieldValues(form) {
  return Object.fromEntries([...form.querySelectorAll("input[name]")].map((input) => [input.name, input.value]));
}
