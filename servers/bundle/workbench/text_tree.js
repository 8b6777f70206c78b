// Parser for a tree that a tool has written as indented lines.

const MOST_LINES = 50_000;

/** The nodes of lines such as `src/` and, indented by two, `  main.py`; null if the text has another form. */
export function textTree(text) {
  const lines = text.replace(/\n+$/, "").split("\n");
  if (lines.length < 2 || lines.length > MOST_LINES || !/^\S.*\/$/.test(lines[0])) return null;
  const root = { children: [] };
  const open = [root];
  for (const [number, line] of lines.entries()) {
    const [, blanks, name] = /^( *)(.*)$/.exec(line);
    const level = blanks.length / 2;
    const parent = open[level];
    if (!name || !Number.isInteger(level) || !parent?.children) return null;
    const node = { key: String(number), label: name, children: name.endsWith("/") ? [] : null };
    parent.children.push(node);
    open.length = level + 1;
    open.push(node);
  }
  return root.children;
}
