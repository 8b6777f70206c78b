"""What the reading tools say: a text, and where it was cut."""

from collections.abc import Sequence

from ..errors import FilesError
from ..files import Files
from ..names import displayed
from .read import TextRead, read_text

__all__ = ["many_text", "text_of"]


def text_of(read: TextRead) -> str:
    """A text, and a last line that says so where it was cut."""
    if not read.truncated:
        return read.text
    size, shown = f"{read.size:,}", f"{len(read.text.encode()):,}"
    rest = "" if read.next_line is None else f"; the rest begins at line {read.next_line:,}"
    return f"{read.text}\n[cut: {shown} of {size} bytes shown{rest}; use head or tail]"


def many_text(files: Files, paths: Sequence[str], budget: int) -> str:
    """Several files one after the other, each under its path; an error stands in the place of its file."""
    parts: list[str] = []
    for path in paths:
        try:
            read = read_text(files.beneath, files.place(path), max(budget, 1))
            budget -= len(read.text.encode())
            parts.append(f"{displayed(path)}:\n{text_of(read)}")
        except FilesError as error:
            parts.append(f"{displayed(path)}: Error - {error.code}: {error}")
    return "\n---\n".join(parts)
