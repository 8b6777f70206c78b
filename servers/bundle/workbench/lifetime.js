// Ends what a panel has begun when the panel is left.

/** An element that calls what `onLeave` was given once it is no longer on the page. */
export class LiveSection extends HTMLElement {
  #ends = new Set();

  /** Calls `end` when the section is left; gives a function that calls it before that. */
  onLeave(end) {
    this.#ends.add(end);
    return () => {
      if (this.#ends.delete(end)) end();
      return null;
    };
  }

  /** Listens to `target` for as long as the section is on the page. */
  listen(target, type, heard) {
    target.addEventListener(type, heard);
    this.onLeave(() => target.removeEventListener(type, heard));
  }

  disconnectedCallback() {
    // What is moved to another place comes back at once.
    queueMicrotask(() => {
      if (this.isConnected) return;
      const ends = [...this.#ends];
      this.#ends.clear();
      for (const end of ends) end();
    });
  }
}

customElements.define("live-section", LiveSection);
