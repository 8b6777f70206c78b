// Long work in slices, between which the page can scroll, paint and react.

const SLICE_MS = 8;

/** Lets the browser do its pending work, and continues after it. */
export function breathe() {
  return globalThis.scheduler?.yield ? globalThis.scheduler.yield() : new Promise((done) => setTimeout(done));
}

/** Reports when a slice of work has taken long enough: `if (slice.over()) await slice.next()`. */
export class Slice {
  #end = performance.now() + SLICE_MS;

  over() {
    return performance.now() >= this.#end;
  }

  async next() {
    await breathe();
    this.#end = performance.now() + SLICE_MS;
  }
}
