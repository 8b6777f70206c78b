// Asks the user before something is changed.
import { h, visible } from "../../common/web/dom.js";
import { foldingJson } from "./contents.js";
import { actionButton, toolbar } from "./pieces.js";

/** Returns true if the tool may be called: one that only reads always may; for others the user is asked. */
export function confirmCall(tool, given) {
  if (tool.annotations?.readOnlyHint === true) return true;
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { "aria-labelledby": "confirm-title" },
      h("h2", { id: "confirm-title", text: visible(`Run ${tool.title || tool.name}?`, 200) }),
      h("p", {
        text:
          "The server does not declare this tool read-only, so it may change something. " +
          "The tool will be called with these arguments:",
      }),
      foldingJson(given),
    );
    const end = (answer) => {
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    dialog.append(
      toolbar(
        actionButton("Run it", () => end(true), "primary"),
        actionButton("Don’t", () => end(false)),
      ),
    );
    dialog.addEventListener("cancel", (event) => (event.preventDefault(), end(false)));
    document.body.append(dialog);
    dialog.showModal();
  });
}
