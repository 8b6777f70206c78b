// Suggestions from the server for a field while the user types.
import { h, clear, visible } from "../../common/web/dom.js";

const MOST_SUGGESTIONS = 100;
let suggestionLists = 0;

/**
 * Makes `input` suggest the values of `ask(text)`. Only one request is in progress at a time: text typed in the
 * meantime is requested after its answer. The list is next to the input.
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
      // The field also works without suggestions.
      isRefused = true;
    } finally {
      isAsking = false;
    }
  };
  input.addEventListener("focus", look);
  input.addEventListener("input", look);
  return list;
}

/** A labeled field for one argument, with the suggestions of `complete(name, text)`, if given. */
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

/** Returns the values of `completion/complete` for the argument `name` of `reference`; `settled()` are the others. */
export async function completions(client, reference, name, value, settled) {
  const context = Object.entries(settled).filter(([key, given]) => key !== name && given !== "");
  const result = await client.request("completion/complete", {
    ref: reference,
    argument: { name, value },
    ...(context.length ? { context: { arguments: Object.fromEntries(context) } } : {}),
  });
  return Array.isArray(result?.completion?.values) ? result.completion.values : [];
}

/** The values in the fields of a form, by name. */
export function fieldValues(form) {
  return Object.fromEntries([...form.querySelectorAll("input[name]")].map((input) => [input.name, input.value]));
}
