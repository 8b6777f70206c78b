"""The scripts that run in Redis, which are Lua files next to this one."""

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "scripts"
_PARTS = ("replicas", "sessions", "streams", "limits", "tasks", "blobs")


@cache
def _read(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text(encoding="utf-8")


BATCH = "\n".join(_read(name) for name in ("batch_begin", *_PARTS, "batch_end"))
"""Runs the operations of one replica, in order; they are defined in the files between the first and the last."""
JOIN, LEAVE = _read("join"), _read("leave")
