// Long work in slices: between them the page scrolls, paints and listens, so that nothing ever blocks it for long.

const SLICE_MS = 8;

/** Lets the browser do what is due, and goes on after it. */
export function breathe() {
  return globalThis.scheduler?.yield ? globalThis.scheduler.yield() : new Promise((done) => setTimeout(done));
}

/** Says when work has gone on for long enough: `if (slice.over()) await slice.next()`. */
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
