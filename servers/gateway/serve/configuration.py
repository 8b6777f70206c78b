"""A configuration file, in YAML, for several servers: the options that every server has, and the settings of each.

    port: 8080
    token-file: token
    servers:
      filesystem: {roots: [src, ~/notes]}
      sqlite: {databases: [shop.db], allow-write: true}
      github: {command: npx -y some-server}
    join: true

Names, checks and paths work as in a settings file for one server (`shared/program/settings/settings_file.py`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from shared.auth.policy import Rules
from shared.program.process import Options
from shared.program.settings.options import FileValue, is_secret
from shared.program.settings.settings_file import parse_settings, read_text
from shared.program.settings.tables import TABLES, read_rules
from shared.yaml import YamlError, read_yaml

from .selection import JoinOptions, WorkbenchOptions
from .third_party import ThirdPartyServer, is_third_party, read_third_party

OPTIONS: Mapping[str, FieldInfo] = {
    # A configuration can't name another settings file, and the path of a server follows from its name.
    name: field
    for name, field in Options.model_fields.items()
    if name not in {"settings", "transport", "path"}
}
"""The options of every server that are set once for all servers in a configuration."""


class Configuration(NamedTuple):
    """The content of a configuration file."""

    path: Path | None = None
    options: Mapping[str, FileValue] = {}
    join_options: Mapping[str, FileValue] = {}
    workbench: Mapping[str, FileValue] = {}
    servers: Mapping[str, Mapping[str, Any]] | None = None
    """The settings of each server, by its name, as in the file; None if the file has no `servers`."""
    readable_by_others: bool = False
    principals: FileValue | None = None
    """The table of principals at the top level, which applies to all servers."""

    def rules(self, name: str, written: Mapping[str, FileValue], settings: BaseModel | None) -> Rules:
        """Return the rules for principals and scopes of the server called `name`. `written` are its settings as in
        the file, `settings` the validated ones. Raises ValueError with a one-line message if they are invalid."""
        if self.path is None:
            return Rules()
        return read_rules(written, self.path, settings, self.principals, f"servers.{name}.")

    def settings(self, name: str, fields: Mapping[str, FieldInfo]) -> Mapping[str, FileValue]:
        """Return the settings of the server called `name`. Raises ValueError for a key that is not in `fields`."""
        if self.path is None or self.servers is None:
            return {}
        return parse_settings(self.servers.get(name, {}), fields, self.path, f"servers.{name}.")

    def exposed(self, settings: Mapping[str, FileValue], fields: Mapping[str, FieldInfo]) -> str | None:
        """Return the source of the first secret among `settings` that other users can read; None if there is none."""
        if not self.readable_by_others:
            return None
        return next((setting.source for name, setting in settings.items() if is_secret(fields[name])), None)

    def third_party_servers(self) -> dict[str, ThirdPartyServer]:
        """Return the third-party servers in the configuration, by name. Raises ValueError with a one-line message for
        an invalid one."""
        return {
            name: read_third_party(name, content, self.path, readable_by_others=self.readable_by_others)
            for name, content in (self.servers or {}).items()
            if self.path is not None and is_third_party(content)
        }


def read_configuration(path: Path) -> Configuration:
    """Read the file at `path`. Raises ValueError with a one-line message if it is not a configuration."""
    text, readable_by_others = read_text(path)
    try:
        content = read_yaml(text)
    except YamlError as error:
        raise ValueError(f"{path}: {error}") from None
    content = _mapping(content, f"{path}")
    written = content.pop("servers", None)
    servers = None if written is None else _mapping(written, f"{path}: servers")
    common = {"principal": TABLES["principal"]}
    options = parse_settings(
        content, {**OPTIONS, **JoinOptions.model_fields, **WorkbenchOptions.model_fields, **common}, path
    )
    principals = options.pop("principal", None)
    return Configuration(
        path,
        {name: option_value for name, option_value in options.items() if name in OPTIONS},
        {name: option_value for name, option_value in options.items() if name in JoinOptions.model_fields},
        {name: option_value for name, option_value in options.items() if name in WorkbenchOptions.model_fields},
        servers
        and {name: _mapping(option_value, f"{path}: servers.{name}") for name, option_value in servers.items()},
        readable_by_others,
        principals,
    )


def _mapping(value: Any, where: str) -> dict[str, Any]:
    """Return `value`, or an empty mapping for None. Raises ValueError if it is not a mapping with names as keys."""
    if not isinstance(value, dict | None):
        raise ValueError(f"{where}: must be a mapping of names to values")
    for key in value or ():
        if not isinstance(key, str):
            raise ValueError(f"{where}: {key!r} is not a valid name")
    return value or {}
