// The headings of a Markdown text, and the ids that links use for them.

const MOST_HEADINGS = 2_000;

/** Returns unique ids for headings, in their order. */
export function headingNames(prefix) {
  const used = new Map();
  return (text) => {
    const slug =
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N}]+/gu, "-")
        .replace(/^-|-$/g, "")
        .slice(0, 60) || "untitled";
    const times = used.get(slug) ?? 0;
    used.set(slug, times + 1);
    return `${prefix}${slug}${times ? `-${times}` : ""}`;
  };
}

/** The headings among blocks and inside them. */
export function headingsOf(blocks) {
  return [...headingsWithin(blocks)];
}

function* headingsWithin(blocks, seen = { left: MOST_HEADINGS }) {
  for (const block of blocks) {
    if (seen.left <= 0) return;
    if (block.kind === "heading") {
      seen.left -= 1;
      yield block;
    }
    if (block.kind === "quote") yield* headingsWithin(block.blocks, seen);
    for (const item of block.items ?? []) yield* headingsWithin(item.blocks, seen);
  }
}
