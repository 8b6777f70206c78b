"""What `--out FILE` saves."""

from collections.abc import Callable, Sequence
from pathlib import Path

from .endings import Misuse
from .showing import Piece


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
