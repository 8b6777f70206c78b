"""The Lua scripts that Redis runs, from the folder `scripts`."""

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "scripts"
_PARTS = ("replicas", "sessions", "streams", "limits", "tasks", "blobs")


@cache
def _read(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text(encoding="utf-8")


BATCH = "\n".join(_read(name) for name in ("batch_begin", *_PARTS, "batch_end"))
"""Carries out the operations of one replica in order. The files between `batch_begin` and `batch_end` define them."""
JOIN, LEAVE = _read("join"), _read("leave")
