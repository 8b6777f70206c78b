"""The results of the reading tools: a text, with a last line of remarks, if there are any.

Each of several files begins after a random mark, so that the content of one file can't imitate the start of another.
"""

import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from servers.common.documents.texts import SIGNATURE_BYTES, may_be_document
from servers.common.files.rooted_files import RootedFiles
from shared.text import quote_name

from ..errors import FilesError, format_error
from .binary import read_bytes
from .charsets import UTF8
from .documents import has_document_name
from .pages import TextRead, json_size, read_text
from .parts import WHOLE

EMPTY = "[empty file]"
_REMARKS_BYTES = 300
"""Number of bytes reserved for the remarks after a file that is cut."""
_HEADING_BYTES, _MIN_FILE_BYTES, _BEGINNING_BYTES = 20, 80, 600
"""Numbers of bytes: of a heading without its path, reserved for a short file or an error, and reserved for the
beginning of a long file."""


class ManyTexts(NamedTuple):
    """The text of several files, and the etag of each file by its path as the client wrote it."""

    text: str
    etags: dict[str, str]


def text_of(read: TextRead) -> str:
    """Return the text, with a last line of remarks if there are any: where it was cut, a charset other than UTF-8,
    and the parts of a document that are left out."""
    if not read.truncated and not read.notes and read.charset.name == UTF8.name:
        # Hosts treat an empty result as a failure.
        return read.text or ("[no text in this part]" if read.size else EMPTY)
    remarks = [] if read.charset.name == UTF8.name else [f"charset {read.charset.name}"]
    remarks += [note.rstrip(".") for note in read.notes]
    if read.truncated:
        remarks.append(f"truncated: {len(read.text.encode()):,} of {read.size:,} bytes shown")
    if read.rest is not None:
        preposition = "at" if read.text.endswith("\n") else "within"
        remarks.append(f"the rest begins {preposition} line {read.rest.line:,}; continue with cursor {read.cursor}")
    elif read.truncated:
        remarks.append("request a smaller tail")
    return "\n".join([*filter(None, [read.text]), f"[{'; '.join(remarks)}]"])


def notes_of(read: TextRead) -> dict[str, str]:
    """Return the metadata for programs: the etag, the charset unless it is UTF-8, and the cursor if there is one."""
    notes = {"etag": read.etag}
    if read.charset.name != UTF8.name:
        notes["charset"] = read.charset.name
    if read.cursor is not None:
        notes["cursor"] = read.cursor
    return notes


def read_many(
    rooted: RootedFiles,
    paths: Sequence[str],
    budget: int,
    check: Callable[[], None],
    add_advice: Callable[[FilesError], FilesError] = lambda error: error,
) -> ManyTexts:
    """Return several files one after another, each under a mark and its path. An error replaces an unreadable file.

    The budget is shared fairly: large files get what small files don't use. If there are too many files, the last
    ones are left out, and the last line says so. `add_advice` adds advice to an error.
    """
    mark, etags = f"--- {secrets.token_hex(4)}", {}
    sizes = [_size(rooted, path) for path in paths]
    shown = _count_fitting(paths, sizes, budget)
    texts = [""] * shown
    for done, index in enumerate(sorted(range(shown), key=sizes.__getitem__)):
        check()
        path = paths[index]
        heading = f"{mark} {quote_name(path)}:"
        room = budget // (shown - done) - json_size(heading + "\n\n")
        try:
            place = rooted.roots.place(path)
            # Documents are not converted here, so only their bytes could be returned.
            if has_document_name(place.path) and may_be_document(read_bytes(rooted, place, SIGNATURE_BYTES, 0).data):
                raise FilesError("not_text", place.path, "is a document", "Use read_text_file, which reads its text.")
            read = read_text(
                rooted, place, max(room - (_REMARKS_BYTES if sizes[index] > room else 0), 1), WHOLE, check
            )
            texts[index], etags[path] = f"{heading}\n{text_of(read)}", read.etag
        except FilesError as error:
            texts[index] = f"{heading} Error - {format_error(add_advice(error))}"
        budget -= json_size(texts[index] + "\n")
    if shown < len(paths):
        texts.append(f"[truncated: {shown:,} of {len(paths):,} files shown; request the others in another call]")
    return ManyTexts("\n".join(texts), etags)


def _size(rooted: RootedFiles, path: str) -> int:
    try:
        return rooted.stat(rooted.roots.place(path)).st_size
    except FilesError:
        return 0


def _count_fitting(paths: Sequence[str], sizes: Sequence[int], budget: int) -> int:
    """Return how many files, from the first, fit with at least their beginning; at least 1."""
    for count, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        budget -= _HEADING_BYTES + json_size(quote_name(path)) + min(max(size, _MIN_FILE_BYTES), _BEGINNING_BYTES)
        if budget < 0:
            return max(count, 1)
    return len(paths)
