"""What the finding tools say: an entry or a match a line, then in brackets what one has to know besides.

Names are as `names.told` has them, and the lines of files have a path and a number before them: neither can look like
the server's own words.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from shared.text import format_count

from .content import ContentFound, FileMatches, LineMatch
from .files import Found
from .listing import FileInfo, Listing
from .tree import Tree, TreeNode

_LABELS = {"file": "[FILE]", "directory": "[DIR]", "symlink": "[LINK]", "other": "[OTHER]"}
_NAMED = 3
"""Files of a charset that are named."""
_MARKS = {"directory": "/", "symlink": " (link)", "other": " (special)"}


def listing_text(found: Listing) -> str:
    """One line an entry, as `[FILE] name`."""
    return _lines((f"{_LABELS[entry.kind]} {entry.told}" for entry in found.entries), _more(found))


def sized_text(found: Listing) -> str:
    """One line an entry with its size, and the sum of those that are shown."""
    files = [entry for entry in found.entries if entry.kind == "file"]
    directories = sum(entry.kind == "directory" for entry in found.entries)
    total = sum(entry.size or 0 for entry in files)
    lines: list[str] = []
    for entry in found.entries:
        size = "" if entry.size is None else f"  {format_count(entry.size, 'byte')}"
        lines.append(f"{_LABELS[entry.kind]} {entry.told}{size}")
    label = "Total" if len(found.entries) == found.total else "On this page"
    folders = format_count(directories, "directory", "directories")
    counts = f"{label}: {format_count(len(files), 'file')}, {folders}, {format_count(total, 'byte')}"
    return _lines([*lines, "", counts], _more(found))


def _more(found: Listing) -> str:
    if not found.truncated:
        return ""
    return f"[cut: {len(found.entries):,} of {found.total:,} entries shown; for more, cursor: {found.cursor}]"


def tree_text(tree: Tree) -> str:
    """One line an entry, indented by depth; directories end in a slash."""
    lines: list[str] = []
    _add_branch(lines, tree["root"], "")
    if tree["truncated"]:
        shown = f"{tree['entries']:,} entries shown"
        lines.append(f"[cut: {shown}; what ends in ... has more, ask for it or leave something out]")
    if tree["ignored"]:
        lines.append(_ignored(tree["ignored"]))
    return "\n".join(lines)


def _add_branch(lines: list[str], node: TreeNode, indent: str) -> None:
    note = f" (not read: {node['error']})" if "error" in node else " ..." if "cut" in node else ""
    lines.append(f"{indent}{node['name']}{_MARKS.get(node['kind'], '')}{note}")
    for child in node.get("children", ()):
        _add_branch(lines, child, indent + "  ")


def search_text(found: Found) -> str:
    """One path a line; directories end in a slash, links and special files in a mark."""
    paths = [match["path"] + _MARKS.get(match["kind"], "") for match in found["matches"]]
    return _lines(paths or ["No matches found"], _notes(found))


def content_text(found: ContentFound) -> str:
    """One line a match, as `path:line: text`; context as `path-line- text`; without matches, one line a file."""
    lines = [line for file in found["files"] for line in _file_lines(file)]
    notes = _notes(found)
    for charset in sorted({file["charset"] for file in found["files"] if "charset" in file}):
        paths = [file["path"] for file in found["files"] if file.get("charset") == charset]
        more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
        notes += f"\n[charset {charset}: {', '.join(paths[:_NAMED])}{more}]"
    if found["skipped"]:
        notes += f"\n[{format_count(found['skipped'], 'file')} passed over: binary or too large]"
    if found["partial"]:
        documents = format_count(found["partial"], "document")
        notes += f"\n[{documents} not searched as a whole; read_text_file says what is left out]"
    if found["documents"]:
        notes += f"\n[{format_count(found['documents'], 'document')} not read; documents=true searches their text]"
    return _lines(lines or [f"No matches found in {format_count(found['searched'], 'file')}"], notes.strip())


def _file_lines(file: FileMatches) -> list[str]:
    path = file["path"]
    if "count" in file:
        return [f"{path}: {file['count']}"]
    if "matches" not in file:
        return [path]
    lines: list[str] = []
    last = 0
    for number, mark, text in _in_order(file["matches"]):
        if last and number > last + 1 and "before" in file["matches"][0]:
            lines.append("--")
        lines.append(f"{path}{mark}{number}{mark} {text}")
        last = number
    return lines


def _in_order(matches: list[LineMatch]) -> list[tuple[int, str, str]]:
    """The number, mark and text of each line to show, each once: a match of its own is no context of another."""
    lines: dict[int, tuple[str, str]] = {}
    for match in matches:
        own = match["text"].split("\n")
        before, after = match.get("before", []), match.get("after", [])
        first = match["line"] - len(before)
        for number, text in enumerate([*before, *own, *after], first):
            is_own = 0 <= number - match["line"] < len(own)
            if is_own or number not in lines:
                lines[number] = (":" if is_own else "-", text)
    return [(number, *lines[number]) for number in sorted(lines)]


def _notes(found: Found | ContentFound) -> str:
    """What is not in the matches: why there may be more, and what was left out."""
    notes = []
    if found["stopped"]:
        more = f"; for more, cursor: {found['cursor']}" if found["cursor"] else ""
        notes.append(f"[stopped: {found['stopped']}{more}]")
    if found["ignored"]:
        notes.append(_ignored(found["ignored"]))
    if found["unreadable"]:
        notes.append(f"[{format_count(found['unreadable'], 'path')} could not be read]")
    return "\n".join(notes)


def _ignored(count: int) -> str:
    return f"[{format_count(count, 'entry', 'entries')} left out by .gitignore; includeIgnored shows them]"


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
        "etag": info.etag,
        "path": info.path,
    }
    return "\n".join(f"{name}: {fact}" for name, fact in facts.items() if fact is not None)


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _lines(lines: Iterable[str], note: str) -> str:
    return "\n".join([*lines, note] if note else lines)
