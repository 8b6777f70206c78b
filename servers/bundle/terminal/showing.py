"""Display of a server's answer, and its storage with `--out FILE`.

It is untrusted text, so nothing in it may control the terminal. A pipe gets it unchanged, with a line break at the
end if that is missing.
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
    """A part of an answer: a `text`, or binary `data`."""

    text: str = ""
    data: bytes | None = None
    mime: str = ""

    @property
    def shown(self) -> str:
        """Its form on a terminal."""
        if self.data is None:
            return self.text
        return f"[{join_lines(self.mime) or 'binary'}, {len(self.data):,} bytes; --out FILE saves it]"


def pieces_of(content: Any) -> list[Piece]:
    """Return the parts of the result of a tool or a prompt."""
    pieces: list[Piece] = []
    for block in records_of(content if isinstance(content, list) else [content]):
        match block.get("type"):
            case "text" if isinstance(block.get("text"), str):
                pieces.append(Piece(block["text"]))
            case "image" | "audio":
                pieces.append(_binary_piece(block, "data"))
            case "resource" if isinstance(block.get("resource"), dict):
                pieces.append(_resource_piece(block["resource"]))
            case "resource_link":
                texts = [block.get(key) for key in ("uri", "title", "description")]
                pieces.append(Piece(" ".join(text for text in texts if isinstance(text, str) and text)))
            case _:
                pieces.append(Piece(json.dumps(block, indent=2, ensure_ascii=False)))
    return pieces


def pieces_of_contents(contents: Any) -> list[Piece]:
    """Return the parts of the result of reading a resource."""
    return [_resource_piece(contents_item) for contents_item in records_of(contents)]


def show(pieces: Sequence[Piece], *, as_error: bool = False) -> None:
    """Print the parts, each on a new line; binary data is only described."""
    for piece in pieces:
        text = piece.shown
        write_text(text if text.endswith("\n") or not text else f"{text}\n", sys.stderr if as_error else sys.stdout)


def write_text(text: str, stream: Any = None) -> None:
    """Write text from the server to stdout, or to another stream. Raises Misuse if it can't be written."""
    out = stream or sys.stdout
    with writing(out):
        out.write(remove_controls(text) if out.isatty() else text)


def write_bytes(data: bytes) -> None:
    """Write binary data to a pipe or a file. Raises Misuse if it can't be written."""
    with writing(sys.stdout):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


@contextmanager
def writing(stream: Any) -> Iterator[None]:
    """Flush the output of the block. Raises Misuse for a full disk and similar errors, which do not concern the
    connection, and BrokenPipeError if the reader has closed the pipe."""
    try:
        yield
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Misuse(f"the output can't be written: {error.strerror}") from None


def check_output_path(path: Path | None) -> None:
    """Check that a file can be saved at the path, before any other work. Raises Misuse."""
    if path is not None and path.is_dir():
        raise Misuse(f"--out: {path} is a directory")
    if path is not None and not path.parent.is_dir():
        raise Misuse(f"--out: there is no directory {path.parent}")


def save(pieces: Sequence[Piece], path: Path, say: Callable[[str], None]) -> None:
    """Write the first to `path`, and each other next to it, with a number before the suffix. Raises Misuse."""
    for number, piece in enumerate(pieces, 1):
        target = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        content = piece.text.encode("utf-8", "surrogatepass") if piece.data is None else piece.data
        try:
            target.write_bytes(content)
        except OSError as error:
            raise Misuse(f"--out: {target}: {error.strerror}") from None
        say(f"saved {target}: {piece.mime or ('text' if piece.data is None else 'binary')}, {len(content):,} bytes")


def remove_controls(text: str) -> str:
    """Return the text with its line breaks, and without control characters."""
    return "\n".join(plain(line.expandtabs()) for line in text.replace("\r\n", "\n").split("\n"))


def write_json(value: Any) -> None:
    """Write one JSON text, in ASCII, which every encoding supports and which can't control a terminal. Raises Misuse
    if it can't be written."""
    with writing(sys.stdout):
        sys.stdout.write(json.dumps(value, indent=2) + "\n")


def records_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list from a server; other items are ignored."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _resource_piece(contents: Mapping[str, Any]) -> Piece:
    if isinstance(contents.get("text"), str):
        return Piece(contents["text"], mime=str(contents.get("mimeType") or ""))
    return _binary_piece(contents, "blob")


def _binary_piece(block: Mapping[str, Any], key: str) -> Piece:
    mime = str(block.get("mimeType") or "")
    try:
        return Piece(data=base64.b64decode(str(block.get(key, "")), validate=True), mime=mime)
    except binascii.Error:
        return Piece(f"[{join_lines(mime) or 'binary'}: its {key!r} is not base64]")
