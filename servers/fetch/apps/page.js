// The app of the fetch server: a page as an article, with its outline and its links.

import { callOrThrow } from "../../common/web/answers.js";
import { copyButton } from "../../common/web/buttons.js";
import { clear, h, visible } from "../../common/web/dom.js";
import { outline, renderMarkdown } from "../../common/web/markdown.js";
import { connectHost, resultText } from "../../common/web/view.js";
import { articleOf, isWebLink, longerArticle, wholeArticle } from "./article.js";

const MOST_SHOWN = 400_000;
const MOST_HEADINGS = 300;
const PIECE = 100_000;

class PageApp {
  #root = document.getElementById("app");
  #host = null;
  #args = null;
  #article = null;
  #body = h("article", { class: "article", tabindex: "0" });
  #outline = h("ol", { class: "outline" });
  #more = h("button", { type: "button", class: "primary", on: { click: () => void this.#showWhole() } });
  #said = h("p", { class: "said", role: "status" });

  async start() {
    this.#host = await connectHost({
      name: "page",
      version: "1",
      onInput: (args) => {
        this.#args = args;
      },
      onResult: (result) => this.#take(result),
      onCancelled: () => this.#fail("The call was cancelled."),
    });
  }

  #take(result) {
    if (result.isError) {
      this.#fail(resultText(result));
      return;
    }
    this.#article = articleOf(result, this.#args);
    this.#frame();
    this.#draw();
  }

  #fail(text) {
    clear(this.#root, h("p", { class: "error", role: "alert", text: visible(text, 2_000) }));
  }

  #frame() {
    const article = this.#article;
    const address = this.#link(article.url, visible(article.url, 300));
    const published = article.published ? h("span", { class: "muted", text: visible(article.published, 100) }) : null;
    const copy = copyButton("Copy text", () => this.#article.text);
    clear(
      this.#root,
      h(
        "header",
        {},
        h("h1", { text: visible(article.title, 500) || "Untitled page" }),
        h("p", { class: "facts" }, address, published),
      ),
      h("div", { class: "toolbar" }, this.#more, copy),
      this.#said,
      h(
        "div",
        { class: "columns" },
        h(
          "nav",
          { class: "side", "aria-label": "Outline" },
          h("h2", { text: "Outline" }),
          this.#outline,
          this.#links(),
        ),
        this.#body,
      ),
    );
  }

  #draw() {
    const article = this.#article;
    clear(this.#body, ...this.#content());
    this.#body.setAttribute("aria-label", visible(article.title, 300) || "The page");
    const shown = article.text.length.toLocaleString();
    const part =
      article.rest === null ? "" : `A part: ${shown} of ${article.total?.toLocaleString() ?? "more"} characters.`;
    this.#said.textContent = [part, visible(article.note, 500)].filter(Boolean).join(" ");
    this.#more.hidden = article.rest === null && article.start === 0;
    const reached = (this.#hasWhole() ? (article.rest ?? 0) : 0) + PIECE;
    this.#more.textContent = article.total > reached ? "Show more" : "Show the whole";
    this.#drawOutline();
  }

  #content() {
    const { text, image, title, url } = this.#article;
    if (image) {
      return [
        h("img", { alt: visible(title, 300) || "The image", src: `data:${image.mimeType};base64,${image.data}` }),
      ];
    }
    if (!this.#isMarkdown()) {
      return [h("pre", { tabindex: "0", "aria-label": "The text", text: visible(text, MOST_SHOWN) })];
    }
    const how = { onLink: (target) => void this.#open(target), base: isWebLink(url) ? url : null };
    const rendered = h("div", { class: "markdown" }, renderMarkdown(text.slice(0, MOST_SHOWN), how));
    return [rendered, this.#cutNote(text)].filter(Boolean);
  }

  #isMarkdown() {
    const { format, kind } = this.#article;
    return format === "markdown" && kind !== "json" && kind !== "text";
  }

  #cutNote(text) {
    const left = text.length - MOST_SHOWN;
    return left > 0
      ? h("p", { class: "muted", text: `${left.toLocaleString()} more characters are not shown.` })
      : null;
  }

  #drawOutline() {
    const { outline: given, rest } = this.#article;
    const shown = this.#shownHeadings();
    const all = rest !== null && given.length > shown.length ? given : shown;
    const items = all.slice(0, MOST_HEADINGS).map((heading, at) => {
      const before = all.slice(0, at).filter((one) => one.text === heading.text).length;
      return this.#heading(heading, before);
    });
    clear(this.#outline, ...items);
    this.#outline.parentElement.classList.toggle("empty", items.length === 0);
  }

  #heading(heading, before) {
    const jump = h("button", { type: "button", class: "jump", text: visible(heading.text, 200) || "…" });
    jump.addEventListener("click", () => void this.#jump(heading.text, before));
    return h("li", { "data-level": String(Math.min(heading.level ?? 1, 6)) }, jump);
  }

  /** Goes to the heading with this text after `before` others with the same text. */
  async #jump(text, before) {
    const find = () => this.#shownHeadings().filter((one) => one.text === text)[before];
    if (!find() && this.#article.rest !== null) {
      await this.#showWhole();
    }
    const heading = document.getElementById(find()?.id ?? "");
    if (heading) {
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
      heading.scrollIntoView({ block: "start" });
    }
  }

  #shownHeadings() {
    const { text } = this.#article;
    return this.#isMarkdown() ? outline(text.slice(0, MOST_SHOWN)) : [];
  }

  #links() {
    const { links } = this.#article;
    if (links.length === 0) {
      return null;
    }
    const items = links.map((link) => h("li", {}, this.#link(link.url, visible(link.text || link.url, 200))));
    return h(
      "details",
      {},
      h("summary", { text: `Links (${links.length.toLocaleString()})` }),
      h("ul", { class: "links" }, ...items),
    );
  }

  #link(url, text) {
    if (!isWebLink(url)) {
      return h("span", { text });
    }
    const link = h("a", { href: url, title: visible(url, 500), text });
    link.addEventListener("click", (event) => {
      event.preventDefault();
      void this.#open(url);
    });
    return link;
  }

  async #open(url) {
    try {
      await this.#host.openLink(url);
    } catch (error) {
      this.#said.textContent = `The host did not open ${visible(url, 300)}: ${visible(error.message, 300)}`;
    }
  }

  async #showWhole() {
    this.#more.disabled = true;
    this.#said.textContent = "Reading the whole page …";
    try {
      this.#article = await this.#longer();
      this.#draw();
    } catch (error) {
      this.#said.textContent = `Not read: ${visible(error.message, 500)}`;
    } finally {
      this.#more.disabled = false;
    }
  }

  /** Returns true if the resource was read already, or is not Markdown: then the text continues piece by piece. */
  #hasWhole() {
    const { resource, text, start } = this.#article;
    return !resource || !this.#isMarkdown() || (start === 0 && text.length >= PIECE / 2);
  }

  async #longer() {
    const article = this.#article;
    if (!this.#hasWhole()) {
      return wholeArticle(article, await this.#host.readResource(article.resource));
    }
    const from = article.rest === null ? { start_index: 0 } : { start_index: article.rest };
    const args = { ...this.#args, url: this.#args?.url ?? article.url, ...from, max_length: PIECE };
    const result = await callOrThrow(this.#host, "fetch", args);
    return article.rest === null ? articleOf(result, args) : longerArticle(article, result);
  }
}

void new PageApp().start();
