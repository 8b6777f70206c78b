// The app of the filesystem server: files to browse, or an edit to confirm.

import { answerView } from "../../common/web/answers.js";
import { clear, h, visible } from "../../common/web/dom.js";
import { connectHost, resultText } from "../../common/web/view.js";
import { Browser } from "./browse.js";
import { showEdit } from "./edit.js";

class FilesApp {
  #root = document.getElementById("app");
  #args = null;
  #browser = null;
  #host = null;

  async start() {
    this.#host = await connectHost({
      name: "files",
      version: "1",
      onInput: (args) => {
        this.#args = args;
      },
      onResult: (result) => void this.#show(result),
      onCancelled: () => this.#say("The call was cancelled."),
      onTeardown: () => this.#browser?.setVisible(false),
    });
    document.addEventListener("visibilitychange", () => {
      this.#browser?.setVisible(document.visibilityState === "visible");
    });
  }

  async #show(result) {
    this.#browser?.setVisible(false);
    try {
      await this.#draw(result);
    } catch (error) {
      this.#say(error.message);
    }
  }

  async #draw(result) {
    if (result.isError) {
      throw new Error(resultText(result));
    }
    if (answerView(result).diff !== undefined || this.#args?.edits || this.#args?.patch) {
      showEdit(this.#root, this.#host, result, this.#args);
      return;
    }
    this.#browser = new Browser(this.#root, this.#host);
    await this.#browser.show(result, this.#args);
  }

  #say(text) {
    clear(this.#root, h("p", { class: "error", role: "alert", text: visible(text, 2_000) }));
  }
}

void new FilesApp().start();
