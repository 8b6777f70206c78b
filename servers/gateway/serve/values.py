"""Values that may be secrets: each stands in a configuration, or is said to be in the environment or in a file.

    headers: {X-Tenant: acme, X-Key: {env: REMOTE_KEY}, X-Sign: {file: ~/keys/sign}}

What is in a file is read whenever it is needed, so that who changes it need not start anything again. No error says
what a value is.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import PlainValidator

from shared.program.settings.options import expand_home
from shared.program.settings.settings_file import read_text
from shared.telemetry.trace import redacted

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)", re.ASCII | re.DOTALL)


class Value(NamedTuple):
    """One value, and where it is."""

    kind: Literal["text", "env", "file"]
    said: str
    """The value itself, or the name of the variable or file that has it."""

    def now(self, directory: Path) -> str:
        """What it is at this moment; a path begins at `directory`. Raises ValueError, in one line, where it is not
        there."""
        if self.kind == "text":
            return self.said
        if self.kind == "env":
            if self.said not in os.environ:
                raise ValueError(f"the environment variable {self.said} is not set")
            return os.environ[self.said]
        return read_value(self.path(directory))[0]

    def path(self, directory: Path) -> Path:
        """The file that has it."""
        return directory / expand_home(self.said)

    def exposed(self, name: str, directory: Path, *, readable: bool) -> bool:
        """Whether others on this machine can read it, and whoever calls it `name` has to think that it is a secret.
        `readable` says that they can read the configuration."""
        if self.kind == "file":
            return read_value(self.path(directory))[1]
        return readable and self.kind == "text" and redacted({name: ""})[name] != ""


def _read(content: Any) -> dict[str, Value]:
    if not isinstance(content, dict):
        raise ValueError("has to be a mapping of names to values")
    return {name: _value(name, one) for name, one in content.items()}


def _value(name: Any, content: Any) -> Value:
    if not isinstance(name, str) or not name:
        raise ValueError(f"{name!r} is not a valid name")
    match content:
        case str():
            return Value("text", content)
        case {"env": str(variable), **rest} if not rest:
            return Value("env", variable)
        case {"file": str(path), **rest} if not rest:
            return Value("file", path)
    raise ValueError(f"{name}: give a text (a number in quotes), {{env: NAME}} or {{file: FILE}}")


Values = Annotated[dict[str, Value], PlainValidator(_read)]
"""Values by their names, as a configuration says them."""


def read_value(path: Path) -> tuple[str, bool]:
    """The one value in a file, without the blanks around it, and whether others than its owner can read it. Raises
    ValueError, in one line."""
    text, readable = read_text(path)
    if not text.strip():
        raise ValueError(f"{path}: is empty")
    return text.strip(), readable


def read_env_file(path: Path) -> tuple[Mapping[str, str], bool]:
    """The variables in a file of lines NAME=VALUE, and whether others than its owner can read it. Quotes around a
    value are left out, as are empty lines and those that begin with `#`; nothing in it is expanded.

    Raises ValueError, in one line."""
    text, readable = read_text(path)
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        parts = _LINE.fullmatch(stripped)
        if parts is None:
            raise ValueError(f"{path}: line {number}: NAME=VALUE is expected")
        value = parts[2]
        found[parts[1]] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
    return found, readable
