"""A settings file: the options of a server under their own names, in TOML.

    allow-write = true
    roots = ["src", "~/notes"]
    port = 8080

A name may be written with `-` or with `_`. Paths are relative to the directory of the file, so that they do not
depend on where the program is started. This module is imported only if there is a settings file.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from ...text import nearest
from .options import FileValue, is_secret, paths_after


class SettingsFile(NamedTuple):
    """The values in a settings file, by field; `exposed` is the location of a secret that other users of this machine
    can read, if any."""

    options: dict[str, FileValue]
    exposed: str | None


def read_settings_file(path: Path, fields: Mapping[str, FieldInfo]) -> SettingsFile:
    """Read values of `fields` from `path`.

    Raises ValueError with a one-line message if the file can't be read, is not TOML, or has an unknown key. The
    values themselves are checked by the model with these fields.
    """
    text, exposed = read_text(path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from None
    options = parse_settings(content, fields, path)
    secret = next((file_value.source for name, file_value in options.items() if is_secret(fields[name])), None)
    return SettingsFile(options, secret if exposed else None)


def parse_settings(
    content: Mapping[str, Any], fields: Mapping[str, FieldInfo], path: Path, key_prefix: str = ""
) -> dict[str, FileValue]:
    """Return the values of `fields` from the content of the file at `path`, by field; `key_prefix` precedes the keys
    in messages, such as "servers.fetch.". Raises ValueError with a one-line message if a key is unknown."""
    options: dict[str, FileValue] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in fields:
            close = nearest(name, fields)
            advice = f"; did you mean {close.replace('_', '-')!r}?" if close else ""
            raise ValueError(f"{path}: there is no option {key_prefix + key!r}{advice}")
        if name in options:
            raise ValueError(f"{path}: {key_prefix}{key} is given twice")
        source = f"{path}: {key_prefix}{key}"
        options[name] = FileValue(make_absolute(value, fields[name], path.absolute().parent, source), source)
    return options


def read_text(path: Path) -> tuple[str, bool]:
    """Return the text of a file, and whether users other than its owner may read it. Raises ValueError with a
    one-line message."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read().decode()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    return text, os.name == "posix" and bool(mode & (stat.S_IRGRP | stat.S_IROTH))


def make_absolute(value: Any, field: FieldInfo, directory: Path, source: str) -> Any:
    """Return the value of a field, in which relative paths are made absolute paths below `directory`.

    Raises ValueError, whose text begins with `source`, for an unknown home directory.
    """
    prefix = paths_after(field)
    if prefix is None:
        return value
    if isinstance(value, list):
        # Nested lists are not converted: they are refused later anyway, and in YAML a list may contain itself.
        return [item if isinstance(item, list) else make_absolute(item, field, directory, source) for item in value]
    if not isinstance(value, str):
        return value
    start = value.find(prefix) + len(prefix)
    path = value[start:]
    # A value without a file name, such as "", ":rw" or ":memory:", must not become a path.
    if not path.partition(":")[0]:
        return value
    try:
        # A path such as "./~name" names a file in this directory, and not a home directory.
        expanded = Path(path) if path.startswith("./~") else Path(path).expanduser()
        return value[:start] + str(directory / expanded)
    except RuntimeError:
        raise ValueError(f"{source}: unknown home directory: {path!r}") from None
