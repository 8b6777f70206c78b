// The differences between two texts, as a unified diff.

const MOST_DIFF_CELLS = 4_000_000;
const LINES_AROUND = 3;

/** The unified diff of two texts; empty if they are equal. Very different texts are replaced as a whole. */
export function unifiedDiff(before, after) {
  if (before === after) return "";
  const steps = changedLines(before.split("\n"), after.split("\n"));
  const hunks = [];
  let oldLine = 1;
  let newLine = 1;
  let hunk = null;
  steps.forEach(([sign, text], at) => {
    const isNear = steps.slice(Math.max(0, at - LINES_AROUND), at + LINES_AROUND + 1).some(([one]) => one !== " ");
    if (!isNear) hunk = null;
    else if (!hunk) hunks.push((hunk = { oldLine, newLine, old: 0, new: 0, lines: [] }));
    if (isNear) hunk.lines.push(sign + text);
    if (sign !== "+") oldLine += 1;
    if (sign !== "-") newLine += 1;
    if (isNear && sign !== "+") hunk.old += 1;
    if (isNear && sign !== "-") hunk.new += 1;
  });
  return hunks.map(hunkText).join("\n");
}

function hunkText(hunk) {
  const start = (line, count) => `${count ? line : line - 1},${count}`;
  return [`@@ -${start(hunk.oldLine, hunk.old)} +${start(hunk.newLine, hunk.new)} @@`, ...hunk.lines].join("\n");
}

/** Each line of both texts with its sign. */
function changedLines(before, after) {
  let head = 0;
  while (head < Math.min(before.length, after.length) && before[head] === after[head]) head += 1;
  let tail = 0;
  const left = Math.min(before.length, after.length) - head;
  while (tail < left && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const old = before.slice(head, before.length - tail);
  const fresh = after.slice(head, after.length - tail);
  const middle = old.length * fresh.length > MOST_DIFF_CELLS ? replacedLines(old, fresh) : commonLines(old, fresh);
  const same = (line) => [" ", line];
  return [...before.slice(0, head).map(same), ...middle, ...before.slice(before.length - tail).map(same)];
}

function replacedLines(old, fresh) {
  return [...old.map((line) => ["-", line]), ...fresh.map((line) => ["+", line])];
}

/** Based on the longest common subsequence. */
function commonLines(old, fresh) {
  const width = fresh.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      const here = i * width + j;
      longest[here] =
        old[i] === fresh[j] ? longest[here + width + 1] + 1 : Math.max(longest[here + width], longest[here + 1]);
    }
  }
  const steps = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < fresh.length) {
    const isSame = i < old.length && j < fresh.length && old[i] === fresh[j];
    const isGone =
      j === fresh.length || (i < old.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1]);
    if (isSame) steps.push([" ", old[i]]);
    else steps.push(isGone ? ["-", old[i]] : ["+", fresh[j]]);
    if (isSame || isGone) i += 1;
    if (isSame || !isGone) j += 1;
  }
  return steps;
}
