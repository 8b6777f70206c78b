"""A configuration: a file of settings for several servers, in YAML: the options of every server, and those of each.

    port: 8080
    token-file: token
    servers:
      filesystem: {roots: [src, ~/notes]}
      sqlite: {databases: [shop.db], allow-write: true}
      github: {command: npx -y some-server}
    join: true

Names, checks and paths are those of a file of settings for one server (`shared/program/settings/settings_file.py`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from shared.auth.policy import Rules
from shared.program.process import Options
from shared.program.settings.options import Written, is_secret
from shared.program.settings.settings_file import read_text, settings_in
from shared.program.settings.tables import TABLES, read_rules
from shared.yaml import YamlError, read_yaml

from .foreign import Foreign, is_foreign, read_foreign
from .selection import Joining, PageOptions

OPTIONS: Mapping[str, FieldInfo] = {
    # It has no other such file, and where each server is follows from its name.
    name: field
    for name, field in Options.model_fields.items()
    if name not in {"settings", "transport", "path"}
}
"""The options of every server that several have in common."""


class Configuration(NamedTuple):
    """What stands in such a file."""

    path: Path | None = None
    options: Mapping[str, Written] = {}
    joining: Mapping[str, Written] = {}
    page: Mapping[str, Written] = {}
    servers: Mapping[str, Mapping[str, Any]] | None = None
    """The settings of each server as they were written; None where the file names no servers."""
    readable_by_others: bool = False
    principals: Written | None = None
    """What is said of principals at all servers."""

    def rules(self, name: str, written: Mapping[str, Written], settings: BaseModel | None) -> Rules:
        """What the tables among those of the server called `name`, which has these `settings`, say. Raises
        ValueError."""
        if self.path is None:
            return Rules()
        return read_rules(written, self.path, settings, self.principals, f"servers.{name}.")

    def settings(self, name: str, fields: Mapping[str, FieldInfo]) -> Mapping[str, Written]:
        """What is set for the server called `name`. Raises ValueError for a key that is none of `fields`."""
        if self.path is None or self.servers is None:
            return {}
        return settings_in(self.servers.get(name, {}), fields, self.path, f"servers.{name}.")

    def exposed(self, settings: Mapping[str, Written], fields: Mapping[str, FieldInfo]) -> str | None:
        """The first secret among `settings` that others on this machine can read."""
        if not self.readable_by_others:
            return None
        return next((found.source for name, found in settings.items() if is_secret(fields[name])), None)

    def foreign(self) -> dict[str, Foreign]:
        """The servers of others in it, by name. Raises ValueError, in one line, for what is wrong with one."""
        return {
            name: read_foreign(name, content, self.path, readable=self.readable_by_others)
            for name, content in (self.servers or {}).items()
            if self.path is not None and is_foreign(content)
        }


def read_configuration(path: Path) -> Configuration:
    """Reads the file at `path`. Raises ValueError, in one line, for what is no such file."""
    text, readable_by_others = read_text(path)
    try:
        content = read_yaml(text)
    except YamlError as error:
        raise ValueError(f"{path}: {error}") from None
    content = _mapping(content, f"{path}")
    written = content.pop("servers", None)
    servers = None if written is None else _mapping(written, f"{path}: servers")
    common = {"principal": TABLES["principal"]}
    options = settings_in(content, {**OPTIONS, **Joining.model_fields, **PageOptions.model_fields, **common}, path)
    principals = options.pop("principal", None)
    return Configuration(
        path,
        {name: one for name, one in options.items() if name in OPTIONS},
        {name: one for name, one in options.items() if name in Joining.model_fields},
        {name: one for name, one in options.items() if name in PageOptions.model_fields},
        servers and {name: _mapping(one, f"{path}: servers.{name}") for name, one in servers.items()},
        readable_by_others,
        principals,
    )


def _mapping(value: Any, where: str) -> dict[str, Any]:
    """`value`, where nothing stands for no keys. Raises ValueError where it is no mapping of names."""
    if not isinstance(value, dict | None):
        raise ValueError(f"{where}: has to be a mapping of names to values")
    for key in value or ():
        if not isinstance(key, str):
            raise ValueError(f"{where}: {key!r} is not a valid name")
    return value or {}
