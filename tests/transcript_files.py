"""Transcripts as files: how they are read, and how they are laid out when they are written.

The format is described in tests/transcripts.py, which plays them.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("transcripts")
WIDTH = 118


@dataclass
class Transcript:
    """One transcript. A step is an arrow and the text after it; an update replaces the steps with `<--`."""

    path: Path
    head: list[str]
    options: dict[str, str]
    steps: list[tuple[str, str]]

    @classmethod
    def read(cls, path: Path) -> "Transcript":
        head: list[str] = []
        steps: list[tuple[str, str]] = []
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if line.startswith(("--> ", "<-- ")):
                steps.append((line[:3], line[4:]))
            elif steps and line.startswith(" "):
                steps[-1] = (steps[-1][0], f"{steps[-1][1]}\n{line}")
            elif line and (steps or not line.startswith(("#", *OPTIONS))):
                raise ValueError(f"{path}:{number}: neither comment, option, nor message: {line}")
            elif line:
                head.append(line)
        options = dict(re.split(r":\s*", line, maxsplit=1) for line in head if not line.startswith("#"))
        return cls(path, head, options, steps)

    @property
    def versions(self) -> list[str | None]:
        """Returns the versions under which it is played."""
        return list(self.options["version"].split()) if "version" in self.options else [None]

    def write(self) -> None:
        """Writes the transcript to its file."""
        lines = [*self.head, ""]
        for before, (arrow, text) in zip([("", ""), *self.steps], self.steps, strict=False):
            lines += [""] if (before[0], arrow) == ("<--", "-->") else []
            lines.append(f"{arrow} {text}")
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")


OPTIONS = ("app:", "client:", "version:", "capabilities:", "dialect:")


def transcripts() -> list[Path]:
    """Returns all files, sorted."""
    return sorted(FOLDER.rglob("*.txt"))


def layout(message: Any) -> str:
    """Returns one line, or several if it is long."""
    line = json.dumps(message, ensure_ascii=False)
    return line if len(line) + 4 <= WIDTH else "\n".join(_wrapped(message, "", "    ")).lstrip()


def _wrapped(value: Any, before: str, indent: str) -> Iterator[str]:
    """Returns `value` in lines of limited length; parts that fit in one line stay in one."""
    line = f"{indent}{before}{json.dumps(value, ensure_ascii=False)}"
    if len(line) < WIDTH or not isinstance(value, dict | list) or not value:
        yield line
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield f"{indent}{before}{opening}"
    parts = (
        [(f"{json.dumps(key)}: ", item) for key, item in value.items()]
        if opening == "{"
        else [("", v) for v in value]
    )
    for at, (name, item) in enumerate(parts):
        *lines, last = _wrapped(item, name, f"{indent}  ")
        yield from lines
        yield last if at == len(parts) - 1 else f"{last},"
    yield f"{indent}{closing}"
