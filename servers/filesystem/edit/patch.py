"""Converts unified diffs to edits: each hunk contains the old and new text of an edit, and its line number.

They are read as models write them: the counts of a hunk may be wrong, an empty line may lack its space, a hunk may
have no line numbers, a file may have several headers (anomalyco/opencode#48474), and one may be `*** Update File:
PATH`, as in the format of Codex. In that format, the first hunk needs no header, and a heading above a hunk, such as
`@@ class A`, quotes an earlier line of the file; several headings narrow down the place. A patch that does more than
change existing files is refused.
"""

import os
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from ..errors import FilesError
from .replacements import Edit

MAX_FILES = 100
"""Maximum number of files that one patch changes."""

_HUNK = r"@@(?: -\d+(?:,\d+)? \+(\d+)(?:,\d+)?)?.*"
_HEADING = r"@@ +(?!-\d)(\S.*?)(?: @@)?"
_NULL_PATH = "/dev/null"
_UPDATE_HEADER = "*** Update File: "
_NO_EOL_MARKER = "\\"
"""Start of the marker `\\ No newline at end of file`, after the last line of a file."""
_MARKS = (" ", "+", "-", _NO_EOL_MARKER)
_PREFIXES = "abciow12"
"""Letters that git writes before a path, as in `a/PATH`, including those of `diff.mnemonicPrefix`."""
_QUOTED = r'"((?:[^"\\]|\\[abfnrtv"\\]|\\[0-3][0-7]{2})*)"'
"""A path quoted by git (`core.quotePath`), whose escapes denote bytes."""
_VERSION = r"\d+\.\d.*"
"""Git's version, the last line of an email from git format-patch."""
_REFUSED = {
    "rename from ": "renames a file: use move_file",
    "copy from ": "copies a file: use copy_file",
    "new file mode ": "creates a new file: use write_file",
    "deleted file mode ": "deletes a file: use delete_file",
    "new mode ": "changes a file mode, which no tool can do",
    "GIT binary patch|Binary files .* differ": "changes a binary file, which no tool can do",
    "Only in .*: ": "names a file that exists on one side only: use write_file or delete_file",
    r"\*\*\* Add File: ": "creates a new file: use write_file",
    r"\*\*\* Delete File: ": "deletes a file: use delete_file",
    r"\*\*\* Move to: ": "renames a file: use move_file",
    "@@@": "begins a merge hunk: use a diff against one of the parents",
}
"""Changes that no edit can make: patterns for the line outside hunks that announces each, with the reason for the
refusal."""


class FilePatch(NamedTuple):
    """The hunks of one file."""

    path: str
    edits: list[Edit]


def read_patch(text: str) -> list[FilePatch]:
    """Return the files of a unified diff, in order. Raises FilesError with code `bad_patch`."""
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    files: dict[str, FilePatch] = {}
    edits: list[Edit] = []
    headings: list[str] = []
    index, end, header = 0, -1, -1
    while index < len(lines):
        line = lines[index]
        refused = next((reason for pattern, reason in _REFUSED.items() if re.match(pattern, line)), None)
        if refused is not None:
            raise _bad_patch(index, refused)
        if index != header and _begins_file(lines, index):
            header, path = index, _read_path(lines, index)
            edits = files.setdefault(path, FilePatch(path, [])).edits
            if not _precedes_hunk(lines, index):
                index += 1 if line.startswith(_UPDATE_HEADER) else 2
        elif index == header or re.fullmatch(_HUNK, line):
            if not files:
                raise _bad_patch(index, "begins a hunk, but no `+++ b/PATH` line precedes it")
            end = next((end for end in range(index + 1, len(lines)) if _ends_hunk(lines, end)), len(lines))
            heading = re.fullmatch(_HEADING, line)
            if heading is not None:
                headings.append(heading[1])
            if heading is None or end > index + 1 or not "".join(lines[end : end + 1]).startswith("@@"):
                edits.append(_read_hunk(lines, index, end, tuple(headings)))
                headings.clear()
            index = end
        elif (
            index == end
            and lines[index + 1 : index + 2]
            and lines[index + 1].startswith(_MARKS)
            and not _begins_file(lines, index + 1)
        ):
            raise _bad_patch(index, "is within a hunk but does not begin with a space, + or -")
        else:
            # Skip a header line that git writes between files, or a line of the text of an email.
            index += 1
    if len(files) > MAX_FILES:
        raise FilesError("bad_patch", "", f"it has more than {MAX_FILES} files", "Split it into several patches.")
    empty = [file.path for file in files.values() if not file.edits] if files else [""]
    if empty:
        raise FilesError("bad_patch", empty[0], "there is no hunk", "Write a unified diff.")
    return list(files.values())


def _precedes_hunk(lines: list[str], index: int) -> bool:
    """Return True if a hunk without a header follows this file header, as in the format of Codex."""
    return lines[index].startswith(_UPDATE_HEADER) and "".join(lines[index + 1 : index + 2]).startswith(_MARKS)


def _begins_file(lines: list[str], index: int) -> bool:
    # Some models write the headers of both formats for one file; then only the second header counts.
    return _begins_unified(lines, index) or (
        lines[index].startswith(_UPDATE_HEADER) and not _begins_unified(lines, index + 1)
    )


def _begins_unified(lines: list[str], index: int) -> bool:
    starts = [line[:4] for line in lines[index : index + 3]]
    return starts[:2] == ["--- ", "+++ "] and starts[-1].startswith("@@")


def _ends_hunk(lines: list[str], index: int) -> bool:
    """Return True if the line at `index` is not part of the hunk that precedes it."""
    # An email from git format-patch ends with the line "-- " and git's version. A removed line may be "-- " as well,
    # so both lines are checked.
    return (
        bool(lines[index] and not lines[index].startswith(_MARKS))
        or _begins_file(lines, index)
        or (lines[index].rstrip() == "--" and any(re.match(_VERSION, line) for line in lines[index + 1 : index + 2]))
    )


def _read_path(lines: list[str], index: int) -> str:
    """Return the path of the file that begins at `index`, without the letters that git writes before it."""
    if lines[index].startswith(_UPDATE_HEADER):
        return lines[index].removeprefix(_UPDATE_HEADER).rstrip()
    old, new = (_unquote(line[4:].split("\t")[0].rstrip()) for line in lines[index : index + 2])
    if old == _NULL_PATH:
        raise _bad_patch(index, "creates a new file: use write_file")
    if new == _NULL_PATH:
        raise _bad_patch(index, "deletes a file: use delete_file")
    if old[1:2] == new[1:2] == "/" and old[0] != new[0] and {old[0], new[0]} <= set(_PREFIXES):
        old, new = old[2:], new[2:]
    if old != new:
        raise _bad_patch(index + 1, "names a different file than the line before: write --- a/PATH and +++ b/PATH")
    return new


def _unquote(path: str) -> str:
    """Return the path without the quotes and escapes of git, if it has any."""
    quoted = re.fullmatch(_QUOTED, path)
    if quoted is None:
        return path
    return os.fsdecode(quoted[1].encode("utf-8", "surrogatepass").decode("unicode_escape").encode("latin-1"))


def _read_hunk(lines: list[str], index: int, end: int, headings: tuple[str, ...]) -> Edit:
    """Return the hunk between its header at `index` and `end` as an edit."""
    body = lines[index + 1 : end]
    # Models leave empty lines between hunks and after the last.
    while body and not body[-1]:
        body.pop()
    old = "".join(line for mark, line in _split_marks(body) if mark != "+")
    if not old:
        raise _bad_patch(index, "has no context lines: include unchanged lines around the addition")
    match = re.fullmatch(_HUNK, lines[index])
    new = "".join(line for mark, line in _split_marks(body) if mark != "-")
    line = int(match[1]) if match and match[1] else 0
    return Edit(old, new, line=line, headings=() if line else headings)


def _split_marks(body: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the marks and lines of a hunk. A line without a line ending is the last line of its file."""
    for line, after in zip_longest(body, body[1:], fillvalue=""):
        if not line.startswith(_NO_EOL_MARKER):
            yield line[:1], line[1:] if after.startswith(_NO_EOL_MARKER) else f"{line[1:]}\n"


def _bad_patch(index: int, reason: str) -> FilesError:
    return FilesError("bad_patch", "", f"line {index + 1} of the patch {reason}")
