// An edit as its diff: the changes of a dry run are made when the user confirms.

import { answerView } from "../../common/web/answers.js";
import { clear, h, visible } from "../../common/web/dom.js";
import { DiffView } from "../../common/web/diff.js";
import { resultText } from "../../common/web/view.js";

const MOST_SAID = 2_000;

/** The arguments of edit_file for the changes that a dry run has shown, while the file is still the same. */
export function argumentsToApply(args, etag) {
  const { dryRun: _dropped, ...wanted } = args;
  const [path, ...others] = pathsOf(args);
  // if_match belongs to the file at `path`, which may differ from the file of other edits.
  return etag && path && others.length === 0 && !wanted.if_match ? { ...wanted, path, if_match: etag } : wanted;
}

/** Shows the result of edit_file; `args` are the tool's arguments, or null if the host did not send them. */
export function showEdit(root, host, result, args) {
  const view = answerView(result);
  const diff = view.diff ?? resultText(result);
  const applied = view.applied ?? args?.dryRun !== true;
  const state = h("span", { class: "badge", text: applied ? "Applied" : "Not applied yet" });
  const said = h("p", { role: "status", class: "edit-said" });
  const shown = new DiffView();
  const bar = h("div", { class: "toolbar" }, h("h1", { text: visible(titleOf(view, args), 300) }), state);
  if (!applied && diff && args) {
    const apply = h("button", { type: "button", class: "primary", text: "Apply" });
    apply.addEventListener(
      "click",
      () => void applyEdit({ host, apply, state, said }, argumentsToApply(args, view.etag)),
    );
    bar.append(apply);
  }
  clear(root, bar, said, diff ? shown : h("p", { class: "muted", text: "The edits change nothing." }));
  if (diff) {
    shown.show(diff);
  }
}

async function applyEdit({ host, apply, state, said }, args) {
  apply.disabled = true;
  said.className = "edit-said";
  said.textContent = "Applying …";
  try {
    const result = await host.callTool("edit_file", args);
    const text = resultText(result);
    if (result.isError) {
      throw new Error(text);
    }
    state.textContent = "Applied";
    apply.hidden = true;
    said.textContent = `Applied. ${visible(text.slice(0, Math.max(text.indexOf("\n"), 0)), MOST_SAID)}`;
    await tellModel(host, args);
  } catch (error) {
    said.className = "edit-said error";
    said.textContent = `Not applied: ${visible(error.message, MOST_SAID)}`;
    apply.disabled = false;
  }
}

async function tellModel(host, args) {
  const paths = pathsOf(args);
  if (host.can("updateModelContext")) {
    await host.updateContext(
      `The user applied the edit of ${paths.join(", ")} that edit_file had shown in a dry run.`,
    );
  }
}

function titleOf(view, args) {
  return view.path ?? (pathsOf(args).join(", ") || "Edit");
}

function pathsOf(args) {
  const paths = args?.edits?.map((one) => one.path ?? args.path) ?? [];
  return [...new Set(paths.filter((path) => typeof path === "string"))];
}
