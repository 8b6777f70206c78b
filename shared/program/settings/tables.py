"""The tables `scopes` and `principal` of a settings file: rules that can't be given as command-line options.

    [scopes]
    write_file = "files:write"
    "resource:log" = ["files:read", "files:logs"]

    [principal."alice@example.org"]
    scopes = ["filesystem:read"]
    roots = ["alice"]

A principal's entry has `scopes`, the only ones that it can ever have, and values that restrict the server's options
for it. `[principal."*"]` is for all principals without an entry of their own. In a configuration with several
servers, each server has its own tables. In addition, one common `principal` table, which may only contain `scopes`,
applies to all of them.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from ...auth.policy import Entitlement, Rules, parse_scopes
from .options import FileValue, read_options
from .settings_file import parse_settings

_KEY = re.compile(r"[A-Za-z0-9_.-]{1,128}|resource:.+|prompt:.+", re.DOTALL)


class _Tables(BaseModel):
    scopes: Any = Field(None, description="the scopes that tools, resources and prompts need")
    principal: Any = Field(None, description="the rights of individual principals")


TABLES: Mapping[str, FieldInfo] = _Tables.model_fields
"""The tables as fields, by key."""


@runtime_checkable
class Narrowable(Protocol):
    """Settings that can be narrowed for a principal."""

    narrowing: ClassVar[type[BaseModel]]
    """The model of the options in a principal's entry."""

    def narrow(self, narrowing: Any) -> BaseModel:
        """Return the settings for a principal whose entry is `narrowing`. Raises ValueError for values that these
        settings do not allow."""


def read_rules(
    file_values: Mapping[str, FileValue],
    path: Path,
    settings: BaseModel | None,
    common_principals: FileValue | None = None,
    key_prefix: str = "",
) -> Rules:
    """Return the rules in the tables of `file_values`, which was read from the file at `path`. `settings` are the
    settings of the server, if it has any; `common_principals` is the `principal` table for all servers; `key_prefix`
    precedes the keys in messages.

    Raises ValueError with a one-line message for an invalid table.
    """
    scopes = _read_table(file_values.get("scopes"))
    principals = _read_table(file_values.get("principal"))
    own_entitlements = {
        name: _read_entitlement(_check_mapping(entry, source), path, settings, f'{key_prefix}principal."{name}".')
        for name, (entry, source) in principals.items()
    }
    common_entitlements = {
        name: _read_entitlement(_check_mapping(*value_and_source), path, None, f'principal."{name}".')
        for name, value_and_source in _read_table(common_principals).items()
    }
    scopes_by_key = {}
    for key, (value, source) in scopes.items():
        if not _KEY.fullmatch(key):
            raise ValueError(f"{source}: must be the name of a tool, resource:SCHEME or prompt:NAME")
        scopes_by_key[key] = _parse_scopes(value, source)
    entitlements: dict[str, Entitlement] = {}
    for name in {**common_entitlements, **own_entitlements}:
        # Both entries apply: the one for this server, and the one for all servers.
        own, common = (
            entries.get(name) or entries.get("*") or Entitlement()
            for entries in (own_entitlements, common_entitlements)
        )
        entitlements[name] = Entitlement((*own.ceilings, *common.ceilings), own.settings)
    return Rules(scopes_by_key, entitlements)


def _read_table(file_value: FileValue | None) -> dict[str, tuple[Any, str]]:
    """Return by key the values of a table, each with its location in the file, for error messages."""
    if file_value is None:
        return {}
    content = _check_mapping(file_value.value, file_value.source)
    return {key: (value, f'{file_value.source}."{key}"') for key, value in content.items()}


def _check_mapping(value: Any, source: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) and key for key in value):
        raise ValueError(f"{source}: must be a table of names and values")
    return value


def _parse_scopes(value: Any, source: str) -> frozenset[str]:
    try:
        return parse_scopes(value)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _read_entitlement(content: dict[str, Any], path: Path, settings: object, key_prefix: str) -> Entitlement:
    narrowable = settings if isinstance(settings, Narrowable) else None
    fields = {} if narrowable is None else narrowable.narrowing.model_fields
    narrower_values = parse_settings(content, {"scopes": TABLES["scopes"], **fields}, path, key_prefix)
    scopes = narrower_values.pop("scopes", None)
    ceilings = () if scopes is None else (_parse_scopes(*scopes),)
    if not narrower_values or narrowable is None:
        return Entitlement(ceilings)
    narrowing = read_options(narrowable.narrowing, {}, file=narrower_values)
    try:
        return Entitlement(ceilings, narrowable.narrow(narrowing))
    except ValueError as error:
        raise ValueError(f"{path}: {key_prefix.removesuffix('.')}: {error}") from None
