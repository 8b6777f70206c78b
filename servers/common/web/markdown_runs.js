// Runs of * _ ~ in a line of Markdown, and which of them mean emphasis.

const PUNCTUATION = /[\p{P}\p{S}]/u;

/** Runs that may still open or close emphasis, as a list that begins with the last one. */
export class RunList {
  bottom = { at: -1, next: null, prev: null };
  top = this.bottom;

  /** Adds the run of `char` in `text` from `from` to `to`, and returns it as a token. */
  add(char, text, from, to) {
    const size = to - from;
    const run = { run: char, size, left: size, opens: [], closes: [], at: from, prev: this.top, next: null };
    Object.assign(run, runFlanks(char, text[from - 1], text[to]));
    this.top.next = run;
    this.top = run;
    return run;
  }

  /**
   * Pairs the runs after `bottom`, by the algorithm in CommonMark's appendix. `floors` prevents repeated searches
   * where nothing was found.
   */
  match(bottom = this.bottom) {
    const floors = new Map();
    let closer = bottom.next;
    while (closer) {
      const kind = `${closer.run}${closer.canOpen}${closer.run === "~" ? closer.size : closer.size % 3}`;
      const opener = closer.canClose ? runOpener(closer, Math.max(bottom.at, floors.get(kind) ?? -1)) : null;
      if (opener) {
        pairRuns(opener, closer);
        if (!opener.left) unlinkRun(opener);
        if (closer.left) continue;
      } else if (closer.canClose) {
        floors.set(kind, closer.at - 1);
      }
      const { next } = closer;
      if (opener || (closer.canClose && !closer.canOpen)) unlinkRun(closer);
      closer = next;
    }
    bottom.next = null;
    this.top = bottom;
  }
}

function runOpener(closer, floor) {
  for (let one = closer.prev; one && one.at > floor; one = one.prev) {
    if (one.canOpen && one.run === closer.run && fitsRun(one, closer)) return one;
  }
  return null;
}

function fitsRun(opener, closer) {
  if (opener.run === "~") return opener.size === closer.size;
  const oneIsBoth = opener.canClose || closer.canOpen;
  return !(oneIsBoth && (opener.size + closer.size) % 3 === 0 && (opener.size % 3 !== 0 || closer.size % 3 !== 0));
}

function pairRuns(opener, closer) {
  const use = opener.run === "~" ? opener.left : Math.min(opener.left, closer.left, 2);
  const tag = opener.run === "~" ? "del" : use === 2 ? "strong" : "em";
  opener.opens.push(tag);
  closer.closes.push(tag);
  opener.left -= use;
  closer.left -= use;
  opener.next = closer;
  closer.prev = opener;
}

function unlinkRun(run) {
  if (run.prev) run.prev.next = run.next;
  if (run.next) run.next.prev = run.prev;
}

/**
 * The result of a token: a run closes by its left characters and opens by its right ones; those between are
 * text.
 */
export function settleRun(token) {
  if (!token.run) return token.text === "" ? [] : [token];
  const text = token.left ? [{ text: token.run.repeat(token.left) }] : [];
  return [...token.closes.map((close) => ({ close })), ...text, ...token.opens.reverse().map((open) => ({ open }))];
}

function runFlanks(char, before, after) {
  const spaceBefore = before === undefined || /\s/.test(before);
  const spaceAfter = after === undefined || /\s/.test(after);
  const punctuationBefore = before !== undefined && PUNCTUATION.test(before);
  const punctuationAfter = after !== undefined && PUNCTUATION.test(after);
  const left = !spaceAfter && (!punctuationAfter || spaceBefore || punctuationBefore);
  const right = !spaceBefore && (!punctuationBefore || spaceAfter || punctuationAfter);
  if (char !== "_") return { canOpen: left, canClose: right };
  return { canOpen: left && (!right || punctuationBefore), canClose: right && (!left || punctuationAfter) };
}
