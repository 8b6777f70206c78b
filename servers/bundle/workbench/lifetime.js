// Ends what a panel has started when the panel is left.

/** An element that calls the function given to `onLeave` once it is no longer on the page. */
export class LiveSection extends HTMLElement {
  #ends = new Set();

  /** Calls `end` when the section is left. Returns a function that calls it earlier. */
  onLeave(end) {
    this.#ends.add(end);
    return () => {
      if (this.#ends.delete(end)) end();
      return null;
    };
  }

  /** Listens to `target` while the section is on the page. */
  listen(target, type, heard) {
    target.addEventListener(type, heard);
    this.onLeave(() => target.removeEventListener(type, heard));
  }

  disconnectedCallback() {
    // An element that is moved is disconnected and connected again at once.
    queueMicrotask(() => {
      if (this.isConnected) return;
      const ends = [...this.#ends];
      this.#ends.clear();
      for (const end of ends) end();
    });
  }
}

customElements.define("live-section", LiveSection);
