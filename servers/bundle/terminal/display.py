"""Prints an answer of a server, and saves it for `--out FILE`.

The answer is untrusted text, so nothing in it may control the terminal. If stdout is not a terminal, the text is
written unchanged, with a line break at the end if that is missing.
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

from .exit_codes import Misuse


class Piece(NamedTuple):
    """A part of an answer: `text`, or binary `data`."""

    text: str = ""
    data: bytes | None = None
    mime: str = ""

    def describe(self, advice: str) -> str:
        """Return the text that is printed for this part. `advice` says how the user gets binary data."""
        if self.data is None:
            return self.text
        return f"[{join_lines(self.mime) or 'binary'}, {len(self.data):,} bytes; {advice}]"


def pieces_of(content: Any) -> list[Piece]:
    """Return the parts of `content`, in the result of a tool or in a message of a prompt."""
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
    """Return the parts of `contents`, in the result of reading a resource."""
    return [_resource_piece(contents_item) for contents_item in records_of(contents)]


def show(pieces: Sequence[Piece], *, as_error: bool = False, advice: str = "--out FILE saves it") -> None:
    """Print the parts, each on a new line, to stdout, or to stderr if `as_error`. Binary data is only described, with
    `advice` on how to get it."""
    for piece in pieces:
        text = piece.describe(advice)
        write_text(text if text.endswith("\n") or not text else f"{text}\n", sys.stderr if as_error else sys.stdout)


def write_text(text: str, stream: Any = None) -> None:
    """Write text of the server to stdout, or to `stream`. Raises Misuse if it can't be written."""
    out = stream or sys.stdout
    with flush_output(out):
        out.write(remove_controls(text) if out.isatty() else text)


def write_bytes(data: bytes) -> None:
    """Write binary data to stdout, which is a pipe or a file. Raises Misuse if it can't be written."""
    with flush_output(sys.stdout):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


@contextmanager
def flush_output(stream: Any) -> Iterator[None]:
    """Flush `stream` after the block, which writes to it. Translates a full disk and similar errors to Misuse, so
    that they are not mistaken for errors of the connection. Raises BrokenPipeError if the reader has closed the
    pipe."""
    try:
        yield
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Misuse(f"the output can't be written: {error.strerror}") from None


def check_output_path(path: Path | None) -> None:
    """Raise Misuse if no file can be saved at `path`, so that a mistake is noticed before the call."""
    if path is not None and path.is_dir():
        raise Misuse(f"--out: {path} is a directory")
    if path is not None and not path.parent.is_dir():
        raise Misuse(f"--out: there is no directory {path.parent}")


def save(pieces: Sequence[Piece], path: Path, say: Callable[[str], None]) -> None:
    """Write the first part to `path`, and the others to files next to it with a number before the suffix. Raises
    Misuse if one can't be written."""
    for number, piece in enumerate(pieces, 1):
        target = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        content = piece.text.encode("utf-8", "surrogatepass") if piece.data is None else piece.data
        try:
            target.write_bytes(content)
        except OSError as error:
            raise Misuse(f"--out: {target}: {error.strerror}") from None
        say(f"saved {target}: {piece.mime or ('text' if piece.data is None else 'binary')}, {len(content):,} bytes")


def remove_controls(text: str) -> str:
    """Return the text without control characters, except line breaks."""
    return "\n".join(plain(line.expandtabs()) for line in text.replace("\r\n", "\n").split("\n"))


def write_json(value: Any) -> None:
    """Write `value` as JSON, in ASCII, so that it fits any encoding and can't control the terminal. Raises Misuse if
    it can't be written."""
    with flush_output(sys.stdout):
        sys.stdout.write(json.dumps(value, indent=2) + "\n")


def records_of(value: Any) -> list[dict[str, Any]]:
    """Return the JSON objects in a list of the server. Other items are ignored; other values are empty lists."""
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
