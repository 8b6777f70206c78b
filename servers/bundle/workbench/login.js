// The form for a token, shown when one is required.
import { h, clear, visible } from "../../common/web/dom.js";

const MOST_ISSUERS = 10;
let hasTried = false;

/** The form. The text typed is stored only in this page's memory, and sent only in headers. */
export function loginForm(app, challenge) {
  const field = h("input", {
    type: "password",
    id: "token",
    autocomplete: "off",
    required: true,
    spellcheck: "false",
  });
  const failed = h("p", { class: "error", role: "alert" });
  const button = h("button", { type: "submit", text: "Log in" });
  const issuers = h("div", {});
  const form = h(
    "form",
    { class: "card login", "aria-labelledby": "login-title" },
    h("h2", { id: "login-title", text: "Log in" }),
    h("p", { text: "The servers require a token; the person who runs them has it." }),
    h("label", { for: "token", text: "Token" }),
    field,
    failed,
    button,
    h("p", { class: "muted", text: "The token stays in the memory of this page until you leave it." }),
    issuers,
  );
  if (hasTried) failed.textContent = "This token is not accepted.";
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const token = field.value.trim();
    field.value = "";
    if (!/^[\x21-\x7e]+$/.test(token)) {
      failed.textContent = "A token is one word of letters, digits and symbols.";
      return;
    }
    button.disabled = true;
    hasTried = true;
    hasTried = !(await app.logIn(token));
  });
  showIssuers(issuers, challenge);
  return form;
}

/** Names the issuers of tokens, if the answer has the address of their list. */
async function showIssuers(place, challenge) {
  const named = /resource_metadata="([^"]+)"/.exec(challenge);
  if (!named || !URL.canParse(named[1])) return;
  try {
    const { pathname } = new URL(named[1]);
    const said = await (await fetch(pathname, { credentials: "omit", redirect: "error" })).json();
    const issuers = said.authorization_servers?.slice(0, MOST_ISSUERS) ?? [];
    const login = h("code", { text: `mcp-server-bundle login ${visible(said.resource ?? "URL", 500)}` });
    clear(
      place,
      h("p", { text: `Tokens are issued by ${issuers.map((one) => visible(one, 300)).join(", ")}.` }),
      h("p", {}, "Hosts log in there automatically, and so does ", login, "."),
    );
  } catch {
    // A user who has a token can still use the form.
  }
}
