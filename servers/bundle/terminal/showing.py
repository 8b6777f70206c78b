"""What a server answered, as people see it and as `--out FILE` saves it.

It is somebody else's text: on a terminal nothing in it moves the cursor. A pipe gets it as it came,
with an end of line where its last one has none.
"""

import base64
import binascii
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from shared.text import join_lines, plain

from .endings import Misuse


class Piece(NamedTuple):
    """A part of an answer: a `text`, or `data` that is none."""

    text: str = ""
    data: bytes | None = None
    mime: str = ""

    @property
    def shown(self) -> str:
        """What a terminal shows of it."""
        if self.data is None:
            return self.text
        return f"[{join_lines(self.mime) or 'binary'}, {len(self.data):,} bytes; --out FILE saves it]"


def pieces_of(content: Any) -> list[Piece]:
    """The parts of what a tool or a prompt gives."""
    return [_piece(block) for block in records_of(content if isinstance(content, list) else [content])]


def pieces_of_contents(contents: Any) -> list[Piece]:
    """The parts of what was read as a resource."""
    return [_of_resource(one) for one in records_of(contents)]


def show(pieces: Sequence[Piece], *, as_error: bool = False) -> None:
    """Writes the parts, each from the beginning of a line; what is no text only where no terminal is."""
    for piece in pieces:
        text = piece.shown
        write_text(text if text.endswith("\n") or not text else f"{text}\n", sys.stderr if as_error else sys.stdout)


def write_text(text: str, stream: Any = None) -> None:
    """Writes a text of the server's to stdout, or to another stream. Raises Misuse where it can't be written."""
    out = stream or sys.stdout
    with writing(out):
        out.write(harmless(text) if out.isatty() else text)


def write_bytes(data: bytes) -> None:
    """Writes what is no text to a pipe or a file. Raises Misuse where it can't be written."""
    with writing(sys.stdout):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


@contextmanager
def writing(stream: Any) -> Iterator[None]:
    """Flushes what the block writes. Raises Misuse for a disk that is full and the like, which is no fault of the
    connection, and BrokenPipeError where nobody reads on."""
    try:
        yield
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Misuse(f"the output can't be written: {error.strerror}") from None


def check_out(path: Path | None) -> None:
    """Raises Misuse where nothing can be saved at the path, before anything is done for it."""
    if path is not None and path.is_dir():
        raise Misuse(f"--out: {path} is a directory")
    if path is not None and not path.parent.is_dir():
        raise Misuse(f"--out: there is no directory {path.parent}")


def save(pieces: Sequence[Piece], path: Path, say: Callable[[str], None]) -> None:
    """Writes the first to `path`, and each other one beside it, with a number before the ending. Raises Misuse."""
    for number, piece in enumerate(pieces, 1):
        place = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        content = piece.text.encode("utf-8", "surrogatepass") if piece.data is None else piece.data
        try:
            place.write_bytes(content)
        except OSError as error:
            raise Misuse(f"--out: {place}: {error.strerror}") from None
        say(f"saved {place}: {piece.mime or ('text' if piece.data is None else 'binary')}, {len(content):,} bytes")


def harmless(text: str) -> str:
    """The text with its lines, and without what a terminal obeys."""
    return "\n".join(plain(line.expandtabs()) for line in text.replace("\r\n", "\n").split("\n"))


def write_json(value: Any) -> None:
    """Writes one JSON text, in ASCII, which every pipe takes and no terminal obeys. Raises Misuse where it can't be
    written."""
    with writing(sys.stdout):
        sys.stdout.write(json.dumps(value, indent=2) + "\n")


def records_of(value: Any) -> list[dict[str, Any]]:
    """The objects in a list that a server gave; what is none is passed over."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _piece(block: Mapping[str, Any]) -> Piece:
    match block.get("type"):
        case "text" if isinstance(block.get("text"), str):
            return Piece(block["text"])
        case "image" | "audio":
            return _binary(block, "data")
        case "resource" if isinstance(block.get("resource"), dict):
            return _of_resource(block["resource"])
        case "resource_link":
            named = [block.get(key) for key in ("uri", "title", "description")]
            return Piece(" ".join(text for text in named if isinstance(text, str) and text))
    return Piece(json.dumps(block, indent=2, ensure_ascii=False))


def _of_resource(one: Mapping[str, Any]) -> Piece:
    if isinstance(one.get("text"), str):
        return Piece(one["text"], mime=str(one.get("mimeType") or ""))
    return _binary(one, "blob")


def _binary(block: Mapping[str, Any], key: str) -> Piece:
    mime = str(block.get("mimeType") or "")
    try:
        return Piece(data=base64.b64decode(str(block.get(key, "")), validate=True), mime=mime)
    except binascii.Error:
        return Piece(f"[{join_lines(mime) or 'binary'}: its {key!r} is not base64]")
