// A directory as a tree next to the preview of one file, with marks on changes.

import { answerView, callOrThrow } from "../../common/web/answers.js";
import { clear, h, visible } from "../../common/web/dom.js";
import { TreeView } from "../../common/web/tree.js";
import { resultText } from "../../common/web/view.js";
import { Follower } from "./changes.js";
import { listDirectory, listingOf, nest, sizeText } from "./entries.js";
import { FilePreview } from "./preview.js";

const MOST_TOLD = 50;
const KIND_MARKS = { directory: "/" };
const KIND_DETAILS = { link: "link", other: "special" };
const STATES = { live: "Live", paused: "Paused", ended: "Not live" };

/** The view of directory_tree and list_directory_with_sizes. */
export class Browser {
  #root;
  #host;
  #path = "";
  #absolute = null;
  #tree = new TreeView();
  #preview = new FilePreview();
  #state = h("span", { class: "badge", role: "status" });
  #changes = h("ol", { class: "changes", tabindex: "0", "aria-label": "Changes, latest first" });
  #follow = h("input", { type: "checkbox", checked: true });
  #follower = null;

  constructor(root, host) {
    this.#root = root;
    this.#host = host;
    this.#follow.addEventListener("change", () => this.setVisible(true));
  }

  /** Shows a result of one of the tools; `args` are its arguments, or null. */
  async show(result, args) {
    const view = answerView(result);
    this.#path = view.path ?? args?.path ?? ".";
    this.#frame();
    await this.#showTree(await this.#top(result, view));
    await this.#begin(view.cursor);
  }

  /** Stops following changes while the page is not visible, and resumes afterwards. */
  setVisible(visibleNow) {
    if (visibleNow && this.#follow.checked) {
      this.#follower?.start();
    } else {
      this.#follower?.stop();
    }
  }

  #frame() {
    const reload = h("button", { type: "button", text: "Reload", on: { click: () => void this.#reload([""]) } });
    const follow = h("label", { class: "follow" }, this.#follow, " Follow changes");
    const title = h("h1", { text: visible(this.#path, 300) });
    const log = h("details", { class: "log", hidden: true }, h("summary", { text: "Changes" }), this.#changes);
    const pane = h(
      "section",
      { class: "pane" },
      h("p", { class: "muted", text: "Choose a file to see its contents." }),
    );
    clear(
      this.#root,
      h("div", { class: "toolbar" }, title, this.#state, follow, reload),
      h("div", { class: "columns" }, h("nav", { class: "side", "aria-label": "Files" }, this.#tree), pane),
      log,
    );
  }

  async #top(result, view) {
    const entries = view.entries ?? [];
    if (entries.some((entry) => entry.path.includes("/"))) {
      return nest(entries, this.#path);
    }
    const listing = listingOf(result, this.#path);
    // A long directory, or a tree whose host did not pass on the data for the view.
    return listing.next === null && listing.nodes.length > 0 ? listing.nodes : this.#list(this.#path, "");
  }

  async #list(path, below) {
    const { nodes, more } = await listDirectory(this.#host, path, below);
    return more ? [...nodes, { key: `${below}\u0000`, name: "… and more", kind: "more", path }] : nodes;
  }

  async #showTree(nodes) {
    const name = this.#path.replace(/\/$/, "").replace(/^.*\//, "") || this.#path;
    this.#tree.show(
      [{ key: "", name, path: this.#path, kind: "directory", size: null, modified: null, loaded: nodes }],
      {
        name: "Files",
        label: (node) => visible(node.name, 300) + (KIND_MARKS[node.kind] ?? ""),
        detail: (node) => KIND_DETAILS[node.kind] ?? sizeText(node.size),
        opens: (node) => node.kind === "directory",
        children: (node) => this.#children(node),
        onSelect: (node) => this.#select(node),
      },
    );
    await this.#tree.open("");
  }

  #children(node) {
    const loaded = node.loaded;
    // The contents of the result are shown once; later they are requested again, since they may have changed.
    node.loaded = null;
    return loaded ?? this.#list(node.path, node.key && `${node.key}/`);
  }

  #select(node) {
    if (node.kind !== "more") {
      this.#root.querySelector(".pane").replaceChildren(this.#preview);
      void this.#preview.show(this.#host, node);
    }
  }

  async #reload(keys) {
    for (const key of keys) {
      await this.#tree.reload(key);
    }
  }

  async #begin(cursor) {
    const told = {
      onState: (state, why) => this.#say(state, why),
      onChanges: (...changes) => this.#take(...changes),
    };
    this.#follower?.stop();
    this.#follower = new Follower(this.#host, this.#path, cursor, told);
    this.setVisible(document.visibilityState === "visible");
    try {
      // Changes are reported with absolute paths.
      const info = await callOrThrow(this.#host, "get_file_info", { path: this.#path });
      this.#absolute = info.structuredContent?.path ?? /^path: (.*)$/m.exec(resultText(info))?.[1] ?? null;
    } catch {
      this.#absolute = null;
    }
  }

  #say(state, why = "") {
    this.#state.textContent = STATES[state];
    this.#state.title = visible(why, 500);
    this.#state.dataset.state = state;
  }

  async #take(changes, overflow) {
    const told = changes.map((change) => ({ ...change, key: this.#keyOf(change.path) }));
    for (const change of told) {
      this.#log(change);
      this.#refresh(change);
    }
    const stale = new Set(told.filter((one) => one.kind !== "modified").map((one) => above(one.key)));
    await this.#reload(overflow ? [""] : stale);
    const shown = new Set(this.#tree.keys);
    for (const change of told) {
      this.#mark(change, shown);
    }
  }

  /** Marks the changed entry, or the closed directory that contains it. */
  #mark({ key, kind }, shown) {
    this.#tree.mark(key, kind === "created" ? "new" : "changed");
    let seen = key;
    while (seen !== "" && !shown.has(seen)) {
      seen = above(seen);
    }
    if (seen !== "" && seen !== key && kind !== "deleted") {
      this.#tree.mark(seen, "changed inside");
    }
  }

  #keyOf(path) {
    const root = `${this.#absolute ?? this.#path}/`;
    return path.startsWith(root) ? path.slice(root.length) : path;
  }

  #log(change) {
    const text = `${new Date(change.time).toLocaleTimeString()} ${change.kind} ${visible(change.key, 300)}`;
    this.#changes.prepend(h("li", { text, "data-kind": change.kind }));
    this.#changes.children[MOST_TOLD]?.remove();
    this.#changes.parentElement.hidden = false;
  }

  #refresh(change) {
    const shown = this.#preview.isConnected ? this.#preview.node : null;
    if (shown?.key === change.key && change.kind === "deleted") {
      this.#preview.tell("deleted");
    } else if (shown?.key === change.key) {
      void this.#preview.show(this.#host, shown, "changed just now");
    }
  }
}

function above(key) {
  return key.slice(0, Math.max(key.lastIndexOf("/"), 0));
}
