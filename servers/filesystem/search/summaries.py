"""The results of the listing and search tools as text: one line for each entry or match, then notes in brackets.

`names.add_uri` has escaped names that look like the server's own words, and lines of files follow a path and a
number, so neither can be mistaken for a note.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shared.text import format_count

if TYPE_CHECKING:  # imported only for types, so that a listing does not import the modules of searches
    from .content import ContentMatches, FileMatches
    from .files import FileSearch
    from .listing import FileInfo, Listing
    from .tree import Tree, TreeNode

_EXPRESSION = re.compile(r"^\^|\\|\||\$$")
"""Syntax of regular expressions that no glob contains."""
_BACKSLASHES = re.compile(r"(?!.*(?:\.[*+]|\\[.dws]\b|[\^$|])).*[\w*]\\[\w*]")
"""Windows separators in a pattern, if it does not look like a regular expression."""
_SEVERAL = re.compile(r"[^{]*,")
"""The beginning of several patterns: a comma outside braces."""
_WILDCARD = re.compile(r"[*?\[{]")
_GREP_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\[|<>]")
"""Syntax of grep that RE2 reads as plain characters."""
_LABELS = {"file": "[FILE]", "directory": "[DIR]", "symlink": "[LINK]", "other": "[OTHER]"}
_MAX_NAMED_FILES = 3
"""Maximum number of files named for one charset."""
_MARKS = {"directory": "/", "symlink": " (link)", "other": " (special)"}


def listing_text(listing: "Listing") -> str:
    """Return one line for each entry, as `[FILE] name`."""
    lines = _join(
        (f"{_LABELS[entry.kind]} {entry.shown_name}" for entry in listing.entries), _truncation_note(listing)
    )
    return lines or ("[no more entries]" if listing.total else "[empty directory]")


def sized_text(listing: "Listing") -> str:
    """Return one line for each entry with its size, and the total of the sizes shown."""
    files = [entry for entry in listing.entries if entry.kind == "file"]
    directories = sum(entry.kind == "directory" for entry in listing.entries)
    total = sum(entry.size or 0 for entry in files)
    lines: list[str] = []
    for entry in listing.entries:
        size = "" if entry.size is None else f"  {format_count(entry.size, 'byte')}"
        lines.append(f"{_LABELS[entry.kind]} {entry.shown_name}{size}")
    label = "Total" if len(listing.entries) == listing.total else "On this page"
    folders = format_count(directories, "directory", "directories")
    counts = f"{label}: {format_count(len(files), 'file')}, {folders}, {format_count(total, 'byte')}"
    return _join([*lines, "", counts], _truncation_note(listing))


def _truncation_note(listing: "Listing") -> str:
    if not listing.truncated:
        return ""
    shown = f"{len(listing.entries):,} of {listing.total:,} entries shown"
    return f"[truncated: {shown}; for more, cursor: {listing.cursor}]"


def tree_text(tree: "Tree") -> str:
    """Return one line for each entry, indented by depth; directories end in a slash."""
    lines: list[str] = []
    _add_branch(lines, tree["root"], "")
    if tree["truncated"]:
        shown = f"{tree['entries']:,} entries shown"
        lines.append(
            f"[truncated: {shown}; directories whose lines end in ... contain more: list those, or exclude entries]"
        )
    if tree["ignored"]:
        lines.append(_ignored_note(tree["ignored"]))
    return "\n".join(lines)


def _add_branch(lines: list[str], node: "TreeNode", indent: str) -> None:
    note = f" (not read: {node['error']})" if "error" in node else " ..." if "cut" in node else ""
    lines.append(f"{indent}{node['name']}{_MARKS.get(node['kind'], '')}{note}")
    for child in node.get("children", ()):
        _add_branch(lines, child, indent + "  ")


def search_text(result: "FileSearch", pattern: str) -> str:
    """Return one line for each path. Directories end in a slash, links and special files in a mark. If there are no
    matches and `pattern` looks like a regular expression, a Windows path or a part of a name, a note explains how
    patterns are interpreted."""
    paths = [match["path"] + _MARKS.get(match["kind"], "") for match in result["matches"]]
    notes = _notes(result)
    if not paths and not result["stopped"]:
        if _BACKSLASHES.match(pattern):
            notes += "\n[a slash separates directories in a pattern, as in src/*.css]"
        elif _EXPRESSION.search(pattern):
            notes += "\n[a pattern is a glob such as **/*.css, not a regular expression]"
        elif not _WILDCARD.search(pattern):
            notes += "\n[a pattern without a wildcard is a whole name; *name* finds it within names]"
        elif _SEVERAL.match(pattern):
            notes += "\n[a pattern is one glob; *.{js,ts} matches either]"
    return _join(paths or ["No matches found"], notes.strip())


def content_text(result: "ContentMatches", pattern: str = "", glob: str = "*") -> str:
    """Return one line for each matching line, as `path:line: text`, with context as `path-line- text`. If only files
    or counts were requested, return one line for each file. If nothing was found, a note explains the syntax of
    `glob` or of `pattern`, a regular expression, which may have been written in another one.
    """
    lines = [line for file in result["files"] for line in _format_file(file)]
    notes = _notes(result)
    for charset in sorted({file["charset"] for file in result["files"] if "charset" in file}):
        paths = [file["path"] for file in result["files"] if file.get("charset") == charset]
        more = f" and {len(paths) - _MAX_NAMED_FILES:,} more" if len(paths) > _MAX_NAMED_FILES else ""
        notes += f"\n[charset {charset}: {', '.join(paths[:_MAX_NAMED_FILES])}{more}]"
    if result["hidden"]:
        hidden = format_count(result["hidden"], "hidden entry", "hidden entries")
        notes += f"\n[{hidden} not searched; includeIgnored searches them]"
    if result["skipped"]:
        notes += f"\n[{format_count(result['skipped'], 'file')} skipped: binary or too large]"
    if result["partial"]:
        documents = format_count(result["partial"], "document")
        notes += f"\n[{documents} not searched completely; read_text_file says what is left out]"
    if result["documents"]:
        notes += f"\n[{format_count(result['documents'], 'document')} not read; documents=true searches their text]"
    if not lines and not result["stopped"]:
        if glob != "*" and not (result["searched"] or result["skipped"]):
            notes += "\n[glob is one pattern of files, such as *.{js,ts} or src/**; excludePatterns excludes files]"
        elif _GREP_ESCAPE.search(pattern):
            notes += "\n[in RE2, | separates alternatives, \\| is a bar, and \\b is the edge of a word]"
    return _join(lines or [f"No matches found in {format_count(result['searched'], 'file')}"], notes.strip())


def _format_file(file: "FileMatches") -> list[str]:
    path = file["path"]
    if "count" in file:
        return [f"{path}: {file['count']}"]
    if "matches" not in file:
        return [path]
    # Each line is shown once, as a match if it is one, even if it is also the context of another match.
    marks_and_texts: dict[int, tuple[str, str]] = {}
    for match in file["matches"]:
        match_lines = match["text"].split("\n")
        before, after = match.get("before", []), match.get("after", [])
        for number, text in enumerate([*before, *match_lines, *after], match["line"] - len(before)):
            is_match = 0 <= number - match["line"] < len(match_lines)
            if is_match or number not in marks_and_texts:
                marks_and_texts[number] = (":" if is_match else "-", text)
    lines: list[str] = []
    last = 0
    for number, (mark, text) in sorted(marks_and_texts.items()):
        if last and number > last + 1 and "before" in file["matches"][0]:
            lines.append("--")
        lines.append(f"{path}{mark}{number}{mark} {text}")
        last = number
    return lines


def _notes(result: "FileSearch | ContentMatches") -> str:
    """Return the notes after the matches: why there may be more, and what was left out."""
    notes = []
    if result["stopped"]:
        more = f"; for more, cursor: {result['cursor']}" if result["cursor"] else ""
        notes.append(f"[stopped: {result['stopped']}{more}]")
    if result["ignored"]:
        notes.append(_ignored_note(result["ignored"]))
    if result["unreadable"]:
        notes.append(f"[{format_count(result['unreadable'], 'path')} could not be read]")
    return "\n".join(notes)


def _ignored_note(count: int) -> str:
    return f"[{format_count(count, 'entry', 'entries')} left out by .gitignore; includeIgnored shows them]"


def info_text(info: "FileInfo") -> str:
    """Return one line for each field."""
    facts = {
        "kind": info.kind,
        "size": format_count(info.size, "byte"),
        "created": _format_time(info.created),
        "modified": _format_time(info.modified),
        "accessed": _format_time(info.accessed),
        "permissions": info.permissions,
        "media type": info.mime,
        "etag": info.etag,
        "path": info.path,
    }
    return "\n".join(f"{name}: {fact}" for name, fact in facts.items() if fact is not None)


def _format_time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _join(lines: Iterable[str], note: str) -> str:
    return "\n".join([*lines, note] if note else lines)
