"""What the finding tools say in words: the text form of each result, with the same facts as the data beside it."""

from collections.abc import Iterable
from datetime import UTC, datetime

from .listing import FileInfo, ListedEntry, Listing, Tree, TreeNode
from .searching import Found

__all__ = ["info_text", "listing_text", "search_text", "sized_text", "tree_text"]

_LABELS = {"file": "[FILE]", "directory": "[DIR]", "symlink": "[LINK]", "other": "[OTHER]"}


def listing_text(found: Listing) -> str:
    """One line an entry, as `[FILE] name`."""
    return _lines((f"{_LABELS[entry.kind]} {entry.name}" for entry in found.entries), _left_out(found))


def sized_text(found: Listing) -> str:
    """One line an entry with its size, and a sum."""
    files = [entry for entry in found.entries if entry.kind == "file"]
    directories = sum(entry.kind == "directory" for entry in found.entries)
    total = sum(entry.size or 0 for entry in files)
    lines = [f"{_LABELS[entry.kind]} {entry.name}{_size(entry)}" for entry in found.entries]
    return _lines(
        [*lines, "", f"Total: {len(files)} files, {directories} directories, {total:,} bytes"], _left_out(found)
    )


def _size(entry: ListedEntry) -> str:
    return "" if entry.size is None else f"  {entry.size:,} bytes"


def _left_out(found: Listing) -> str:
    return f"[cut: {len(found.entries):,} of {found.total:,} entries shown]" if found.truncated else ""


def tree_text(tree: Tree) -> str:
    """One line an entry, indented by depth; directories end in a slash."""
    cut = f"[cut after {tree.entries:,} entries; leave something out with excludePatterns]" if tree.truncated else ""
    return _lines(_branch(tree.root, 0), cut)


def _branch(node: TreeNode, depth: int) -> Iterable[str]:
    mark = {"directory": "/", "symlink": " (link)", "other": " (special)"}.get(node.kind, "")
    note = "" if node.error is None else f" ({node.error})"
    yield f"{'  ' * depth}{node.name}{mark}{note}"
    for child in node.children or ():
        yield from _branch(child, depth + 1)


def search_text(found: Found) -> str:
    """One path a line."""
    notes = [f"[stopped: {found.stopped}; there may be more]"] if found.stopped else []
    if found.unreadable:
        notes.append(f"[{found.unreadable} directories could not be read]")
    paths = [match.path for match in found.matches] or ["No matches found"]
    return _lines([*paths, *notes], "")


def info_text(info: FileInfo) -> str:
    """One fact a line."""
    facts = {
        "kind": info.kind,
        "size": f"{info.size:,} bytes",
        "created": _time(info.created),
        "modified": _time(info.modified),
        "accessed": _time(info.accessed),
        "permissions": info.permissions,
        "media type": info.mime,
    }
    return "\n".join(f"{name}: {fact}" for name, fact in facts.items() if fact is not None)


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _lines(lines: Iterable[str], note: str) -> str:
    return "\n".join([*lines, note] if note else lines)
