"""The files that the filesystem servers are measured with, made up in the same way every time."""

from pathlib import Path

FOLDERS, FILES, TYPESCRIPT = 1_000, 20, 2
"""Folders, files in each, and how many of those end in `.ts`: 20,000 files, 2,000 of them `.ts`."""
LINES = 234_000
"""Lines of the long text, 47 bytes each: 11 MB."""
HUGE = 200_000_000
"""Bytes of the huge text."""
LARGE = 1_000_000_000
"""Bytes of the text that is searched, with the needle in its last line."""
NEEDLE = "needle"
NEEDLES = 500
"""Files, spread over all folders, that hold the needle in one line."""

LONG_TEXT, HUGE_TEXT, LARGE_TEXT = "long.txt", "huge.txt", "large.txt"


def make_tree(folder: Path) -> Path:
    """Many small files in many folders."""
    tree = folder / "tree"
    for number in range(FOLDERS):
        inner = tree / f"part-{number % 10}" / f"folder-{number:03}"
        inner.mkdir(parents=True)
        for file in range(FILES):
            suffix = "ts" if file < TYPESCRIPT else "txt"
            # One needle in every second folder.
            found = file == 7 and number % (FOLDERS // NEEDLES) == 0
            lines = [f"line {line} of file {file} in folder {number}" for line in range(20)]
            (inner / f"file-{file:02}.{suffix}").write_text("\n".join([*lines, f"a {NEEDLE}" if found else "", ""]))
    return tree


def make_texts(folder: Path) -> None:
    """A long text, a huge one, and one to search."""
    lines = "".join(f"this is line {number:>8} and it is as long as any\n" for number in range(1, LINES + 1))
    (folder / LONG_TEXT).write_text(lines)
    with (folder / LARGE_TEXT).open("w") as large:
        for _ in range(LARGE // len(lines)):
            large.write(lines)
        large.write(f"a {NEEDLE}\n")
    block = b"x" * 99 + b"\n"
    with (folder / HUGE_TEXT).open("wb") as file:
        for _ in range(HUGE // (len(block) * 10_000)):
            file.write(block * 10_000)
