// The contents of one file: text page by page, a picture or a sound; otherwise its facts.

import { callOrThrow } from "../../common/web/answers.js";
import { copyButton } from "../../common/web/buttons.js";
import { clear, h, visible } from "../../common/web/dom.js";
import { resultText } from "../../common/web/view.js";
import { sizeText, timeText } from "./entries.js";

const HEAD_LINES = 300;
const MOST_PREVIEWED = 300_000;
const MEDIA = /\.(png|jpe?g|gif|webp|avif|bmp|ico|svg|wav|mp3|ogg|oga|flac|m4a)$/i;
const NOT_TEXT = /^not_text\b/;

/** The text in an answer of read_text_file, the server's note below it, and the cursor of the next page. */
export function pieceOf(result) {
  const text = resultText(result);
  const { cursor = null, charset = null } = result?._meta ?? {};
  const noted = (cursor ?? charset) !== null ? text.lastIndexOf("\n[") : -1;
  return noted < 0
    ? { text, note: "", cursor }
    : { text: text.slice(0, noted), note: text.slice(noted + 2, -1), cursor };
}

/** `<file-preview>`: shows one node of the tree at a time. */
export class FilePreview extends HTMLElement {
  #host = null;
  #node = null;
  #turn = 0;
  #text = "";

  /** The node that is shown, or null. */
  get node() {
    return this.#node;
  }

  /** Shows a node; `said` is a remark above it, such as that it has just changed. */
  async show(host, node, said = "") {
    this.#host = host;
    this.#node = node;
    this.#turn += 1;
    const turn = this.#turn;
    const body = h("div", { class: "preview-body", "aria-busy": "true" });
    this.setAttribute("aria-label", `Preview of ${visible(node.name, 200)}`);
    clear(this, this.#head(said), body);
    try {
      const shown = node.kind === "file" ? await this.#read(node) : [h("p", { class: "muted", text: whatIs(node) })];
      if (turn === this.#turn) {
        clear(body, ...shown);
      }
    } catch (error) {
      if (turn === this.#turn) {
        clear(body, h("p", { class: "error", role: "alert", text: visible(error.message, 2_000) }));
      }
    } finally {
      body.removeAttribute("aria-busy");
    }
  }

  /** Reports that the node no longer exists, and keeps the shown contents. */
  tell(said) {
    this.querySelector(".preview-said")?.replaceChildren(said);
  }

  #head(said) {
    const node = this.#node;
    const facts = [sizeText(node.size), timeText(node.modified)].filter(Boolean).join(" · ");
    return h(
      "header",
      { class: "preview-head" },
      h("h2", { text: visible(node.name, 300) }),
      h("span", { class: "muted", text: facts }),
      h("span", { class: "preview-said", role: "status", text: said }),
    );
  }

  async #read(node) {
    if (MEDIA.test(node.name)) {
      return this.#media(node);
    }
    try {
      const args = { path: node.path, head: HEAD_LINES };
      return this.#pages(pieceOf(await callOrThrow(this.#host, "read_text_file", args)));
    } catch (error) {
      if (NOT_TEXT.test(error.message)) {
        return this.#media(node);
      }
      throw error;
    }
  }

  async #media(node) {
    const result = await callOrThrow(this.#host, "read_media_file", { path: node.path });
    const block = (result.content ?? []).find((one) => one.type === "image" || one.type === "audio");
    const source = block && `data:${block.mimeType};base64,${block.data}`;
    if (block?.type === "image") {
      return [h("img", { class: "preview-image", alt: visible(node.name, 300), src: source })];
    }
    if (block) {
      return [h("audio", { controls: true, src: source, "aria-label": visible(node.name, 300) })];
    }
    return [
      h("p", { class: "muted", text: `No text, and nothing to show: ${sizeText(node.size) || "a file"}.` }),
    ];
  }

  #pages(piece) {
    const pre = h("pre", { tabindex: "0", "aria-label": "The text" });
    const note = h("span", { class: "muted", role: "status" });
    const more = h("button", {
      type: "button",
      text: "Show more",
      on: { click: () => void this.#more(pre, note, more) },
    });
    const copy = copyButton("Copy", () => this.#text);
    this.#text = "";
    this.#add(pre, note, more, piece);
    return [pre, h("div", { class: "toolbar" }, more, copy, note)];
  }

  #add(pre, note, more, piece) {
    this.#text += piece.text;
    pre.textContent = visible(this.#text, MOST_PREVIEWED) || "(empty)";
    const lines = this.#text.split("\n").length - 1;
    const whole = piece.cursor === null && (lines === 0 || lines % HEAD_LINES !== 0);
    more.hidden = whole || this.#text.length > MOST_PREVIEWED;
    more.dataset.cursor = piece.cursor ?? "";
    note.textContent = whole ? "" : `${lines.toLocaleString()} lines shown`;
  }

  async #more(pre, note, more) {
    const turn = this.#turn;
    const cursor = more.dataset.cursor;
    const next = { offset: this.#text.split("\n").length, head: HEAD_LINES };
    const args = { path: this.#node.path, ...(cursor ? { cursor } : next) };
    more.disabled = true;
    try {
      const piece = pieceOf(await callOrThrow(this.#host, "read_text_file", args));
      if (turn === this.#turn) {
        this.#add(pre, note, more, piece);
      }
    } catch (error) {
      // If the file ends with the last shown line, there is no line to continue at.
      note.textContent = error.message.startsWith("bad_range") ? "the end" : visible(error.message, 500);
      more.hidden = true;
    } finally {
      more.disabled = false;
    }
  }
}

function whatIs(node) {
  const words = { directory: "A directory: open it in the tree.", link: "A link, which is not followed." };
  return words[node.kind] ?? "This is neither a file nor a directory.";
}

customElements.define("file-preview", FilePreview);
