// The app of the prompt library: a prompt to fill in, to see rendered, and to send to the conversation.

import { answerView } from "../../common/web/answers.js";
import { copyButton } from "../../common/web/buttons.js";
import { clear, h, visible } from "../../common/web/dom.js";
import { connectHost, resultText } from "../../common/web/view.js";
import { ArgumentForm, argumentsListed } from "./arguments.js";
import { messageCard, messagesOf, textToSend } from "./messages.js";

class PromptApp {
  #root = document.getElementById("app");
  #host = null;
  #args = {};
  #name = "";
  #form = new ArgumentForm();
  #said = h("p", { class: "said", role: "status" });
  #shown = h("section", { class: "messages", tabindex: "0", "aria-label": "The prompt, rendered" });
  #source = h("input", { type: "checkbox" });
  #send = h("button", { type: "button", class: "primary", text: "Send to the chat", hidden: true });
  #copy = copyButton("Copy", () => textToSend(this.#messages));
  #messages = [];

  async start() {
    this.#source.addEventListener("change", () => this.#drawMessages());
    this.#form.addEventListener("filled", () => void this.#render());
    this.#send.addEventListener("click", () => void this.#sendToChat());
    this.#host = await connectHost({
      name: "prompt",
      version: "1",
      onInput: (args) => {
        this.#args = args;
      },
      onResult: (result) => void this.#show(result),
      onCancelled: () => this.#say("The call was cancelled.", true),
    });
  }

  async #show(result) {
    const view = answerView(result);
    this.#name = view.name ?? this.#args.name ?? "";
    const described = view.arguments ?? (await this.#lookUp());
    this.#frame(view, described);
    this.#take(result);
  }

  /** The arguments from the index, for an answer that does not contain them. */
  async #lookUp() {
    try {
      const found = await this.#host.callTool("search_prompts", { query: this.#name, limit: 20 });
      return argumentsListed(resultText(found), this.#name);
    } catch {
      return [];
    }
  }

  #frame(view, described) {
    this.#form.show(described, view.given ?? this.#args.arguments);
    const source = h("label", { class: "source" }, this.#source, " As written");
    const filling = h("section", { class: "filling", "aria-label": "Arguments" }, this.#form);
    filling.hidden = described.length === 0;
    clear(
      this.#root,
      h(
        "header",
        {},
        h("h1", { text: visible(view.title ?? this.#name, 300) }),
        h("p", { class: "muted", text: visible(view.description ?? "", 1_000) }),
      ),
      h(
        "div",
        { class: "columns" },
        filling,
        h(
          "div",
          { class: "result" },
          h("div", { class: "toolbar" }, this.#send, this.#copy, source),
          this.#said,
          this.#shown,
        ),
      ),
    );
  }

  #take(result) {
    const failed = result.isError === true;
    this.#say(failed ? resultText(result) : "", failed);
    this.#messages = failed ? [] : messagesOf(result);
    this.#send.hidden = this.#messages.length === 0 || !this.#host.can("message");
    this.#copy.hidden = this.#messages.length === 0;
    this.#drawMessages();
  }

  #drawMessages() {
    const how = { source: this.#source.checked, onLink: (url) => void this.#open(url) };
    clear(this.#shown, ...this.#messages.map((message) => messageCard(message, how)));
  }

  async #render() {
    this.#shown.setAttribute("aria-busy", "true");
    try {
      const args = { name: this.#name, arguments: this.#form.given };
      this.#take(await this.#host.callTool("render_prompt", args));
    } catch (error) {
      this.#say(error.message, true);
    } finally {
      this.#shown.removeAttribute("aria-busy");
    }
  }

  async #sendToChat() {
    this.#send.disabled = true;
    try {
      await this.#host.sendMessage(textToSend(this.#messages));
      this.#say("Sent.");
    } catch (error) {
      this.#say(`Not sent: ${error.message}`, true);
    } finally {
      this.#send.disabled = false;
    }
  }

  async #open(url) {
    try {
      await this.#host.openLink(url);
    } catch (error) {
      this.#say(error.message, true);
    }
  }

  #say(text, failed = false) {
    this.#said.className = failed ? "said error" : "said";
    this.#said.textContent = visible(text, 2_000);
    if (!this.#said.isConnected) {
      clear(this.#root, this.#said);
    }
  }
}

void new PromptApp().start();
