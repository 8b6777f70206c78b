"""Values that may be secret: each is in the configuration, in an environment variable or in a file.

    headers: {X-Tenant: acme, X-Key: {env: REMOTE_KEY}, X-Sign: {file: ~/keys/sign}}

A file is read each time its value is needed, so that a change needs no restart. Errors never contain a value.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import PlainValidator

from shared.program.settings.options import expand_home
from shared.program.settings.settings_file import read_text
from shared.telemetry.trace import redact

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)", re.ASCII | re.DOTALL)


class Value(NamedTuple):
    """A value that is written in the configuration, or the variable or file that contains it."""

    kind: Literal["text", "env", "file"]
    text: str
    """The value itself, or the name of the variable or file that contains it."""

    def current(self, directory: Path) -> str:
        """Return the value as it is now. A path is relative to `directory`. Raises ValueError with a one-line message
        if the variable or file is missing."""
        if self.kind == "text":
            return self.text
        if self.kind == "env":
            if self.text not in os.environ:
                raise ValueError(f"the environment variable {self.text} is not set")
            return os.environ[self.text]
        return read_value(self.path(directory))[0]

    def path(self, directory: Path) -> Path:
        """Return the path of the file that contains the value."""
        return directory / expand_home(self.text)

    def is_exposed(self, name: str, directory: Path, *, readable_by_others: bool) -> bool:
        """Return True if other users of the machine can read the file of the value, or if they can read the
        configuration, which contains the value, and its `name` suggests a secret. `readable_by_others` is true if
        they can read the configuration."""
        if self.kind == "file":
            return read_value(self.path(directory))[1]
        return readable_by_others and self.kind == "text" and redact({name: ""})[name] != ""


def _read_values(content: Any) -> dict[str, Value]:
    if not isinstance(content, dict):
        raise ValueError("must be a mapping of names to values")
    values: dict[str, Value] = {}
    for name, value in content.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"{name!r} is not a valid name")
        match value:
            case str():
                values[name] = Value("text", value)
            case {"env": str(variable), **rest} if not rest:
                values[name] = Value("env", variable)
            case {"file": str(path), **rest} if not rest:
                values[name] = Value("file", path)
            case _:
                raise ValueError(f"{name}: must be a string (numbers in quotes), {{env: NAME}} or {{file: FILE}}")
    return values


Values = Annotated[dict[str, Value], PlainValidator(_read_values)]
"""Values by name, read from a mapping in a configuration."""


def read_value(path: Path) -> tuple[str, bool]:
    """Return the value in a file without surrounding whitespace, and True if other users can read the file. Raises
    ValueError with a one-line message if it can't be read or is empty."""
    text, readable_by_others = read_text(path)
    if not text.strip():
        raise ValueError(f"{path} is empty")
    return text.strip(), readable_by_others


def read_env_file(path: Path) -> tuple[Mapping[str, str], bool]:
    """Return the variables in a file of lines NAME=VALUE, and True if other users can read the file. Quotes around a
    value are removed, empty lines and lines that begin with `#` are skipped, and references to variables are not
    expanded.

    Raises ValueError with a one-line message if the file can't be read or a line has another form.
    """
    text, readable_by_others = read_text(path)
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        parts = _LINE.fullmatch(stripped)
        if parts is None:
            raise ValueError(f"{path}: line {number}: expected NAME=VALUE")
        value = parts[2]
        variables[parts[1]] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
    return variables, readable_by_others
