"""Converts between the servers in the configuration of a client and plain records."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from . import jsonc
from .clients import Client
from .toml_tree import toml_value


class ConfiguredServer(NamedTuple):
    """One server in a client's configuration: it has either a `command` or a `url`."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    """Environment variables that the client sets for the server; values may be secret."""
    url: str | None = None
    headers: Mapping[str, str] = {}
    """The headers that the client sends with each request; values may be secret."""
    token_variable: str | None = None
    """The variable of the client's environment that contains the bearer token to send."""
    enabled: bool = True


def read_entries(client: Client, path: Path) -> dict[str, Any]:
    """Return the entry of each server in the client's file at `path`, by name; empty if there is no file.

    Raises ValueError with a one-line message that names the file if it can't be read or is not valid for the client.
    """
    text = read_bytes(path)
    try:
        if client.format != "toml":
            return json_entries(text or b"", client)
        servers = toml_value(text or b"").get(client.key, {})
        if not isinstance(servers, dict):
            raise ValueError(f"{client.key!r} is not a table")
        return servers
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def project_entries(client: Client, path: Path, project: Path) -> dict[str, Any]:
    """Return the entries that Claude Code stores in the user's file for one project only, where `claude mcp add` puts
    them by default (https://code.claude.com/docs/en/mcp, "Local scope"); empty for other clients.

    Raises ValueError like `read_bytes`, and for a file that is not JSON.
    """
    root = jsonc.parse(read_bytes(path) or b"", False) if client.name == "claude-code" else None
    node = root.value() if root is not None and root.is_object else {}
    for key in ("projects", project.as_posix(), client.key):
        node = node.get(key)
        if not isinstance(node, dict):
            return {}
    return node


def parse_entry(client: Client, name: str, entry: Any) -> ConfiguredServer | None:
    """Return the entry as a record. None if it only has settings for a server of an extension of the client.

    Raises ValueError, which names the server and the field, for an entry that the client could not use.
    """
    if not isinstance(entry, dict):
        raise ValueError(f"{name!r} is not an object")
    enabled = entry.get("disabled") is not True and entry.get("enabled") is not False
    urls = [key for key in ((client.http.url, "url") if client.http else ()) if key in entry]
    if "command" in entry:
        command = _text(entry, "command", name)
        values = entry.get("args", [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(f"{name!r}: 'args' is not a list of strings")
        return ConfiguredServer(name, command, tuple(values), _mapping(entry, "env", name), enabled=enabled)
    if client.http is not None and urls:
        headers = _mapping(entry, client.http.headers, name)
        token = _text(entry, bearer, name) if (bearer := client.http.bearer) and bearer in entry else None
        url = _text(entry, urls[0], name)
        return ConfiguredServer(name, url=url, headers=headers, token_variable=token, enabled=enabled)
    if client.name == "zed" and "settings" in entry:
        return None
    expected = "'command'" if client.http is None else f"'command' or {client.http.url!r}"
    raise ValueError(f"{name!r} has no {expected}")


def build_entry(client: Client, server: ConfiguredServer) -> dict[str, Any]:
    """Return the entry for `server` in the client's file. Raises ValueError if the client can't use such a server."""
    if server.url is None:
        env = {"env": dict(server.env)} if server.env else {}
        return {**client.stdio, "command": server.command, "args": list(server.args), **env}
    if client.http is None:
        raise ValueError(f"the file of {client.title} can list only servers that it starts, not a server with a URL")
    entry: dict[str, Any] = {**client.http.fixed, client.http.url: server.url}
    headers = dict(server.headers)
    if server.token_variable is not None and client.http.bearer is not None:
        entry[client.http.bearer] = server.token_variable
    elif server.token_variable is not None and client.http.variable is not None:
        headers["Authorization"] = f"Bearer {client.http.variable.format(server.token_variable)}"
    elif server.token_variable is not None:
        raise ValueError(f"{client.title} can't read a token from a variable: add the Authorization header by hand")
    return {**entry, client.http.headers: headers} if headers else entry


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a file; None if it does not exist. Raises ValueError if it is unreadable or too large."""
    try:
        # Don't open a pipe, since that would block.
        if path.exists() and not path.is_file():
            raise ValueError(f"{path}: not a file")
        with path.open("rb") as file:
            text = file.read(jsonc.MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    if len(text) > jsonc.MAX_BYTES:
        raise ValueError(f"{path}: more than {jsonc.MAX_BYTES} bytes")
    return text


def servers_member(text: bytes, client: Client) -> jsonc.Member | None:
    """Return the member of the JSON object in `text` that contains the client's servers; None if there is none.

    Raises ValueError, with line and column if possible, for a file that the client does not accept, and for duplicate
    keys, since it is unknown which one the client would use.
    """
    root = jsonc.parse(text, client.format == "jsonc")
    if root is not None and not root.is_object:
        raise ValueError("is not a JSON object")
    member = root.member(client.key) if root is not None else None
    if member is not None and not member.value.is_object:
        raise ValueError(f"{client.key!r} is not an object")
    return member


def json_entries(text: bytes, client: Client) -> dict[str, Any]:
    """Return the entry of each server in a client's JSON file, by name. Raises ValueError like `servers_member`."""
    servers = servers_member(text, client)
    return {member.name: member.value.value() for member in servers.value.members()} if servers is not None else {}


def _text(entry: dict[str, Any], key: str, name: str) -> str:
    value = entry[key]
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name!r}: {key!r} is empty, or not a string")
    return value


def _mapping(entry: dict[str, Any], key: str, name: str) -> dict[str, str]:
    values = entry.get(key) or {}
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise ValueError(f"{name!r}: {key!r} is not an object of strings")
    return values


def write_snippet(client: Client, servers: Sequence[ConfiguredServer], ascii_only: bool = False) -> str:
    """Return text that the user can paste into the client's file to add `servers`, without a newline at its end.

    With `ascii_only`, other characters are escaped. Raises ValueError for a server that the client can't use.
    """
    part = {client.key: {server.name: build_entry(client, server) for server in servers}}
    if client.format != "toml":
        return json.dumps(part, indent=2, ensure_ascii=ascii_only)
    text = tomli_w.dumps(part).rstrip("\n")
    # These characters are always inside quotes, even in keys, where TOML has escapes.
    return re.sub(r"[^\x00-\x7f]", lambda match: f"\\U{ord(match[0]):08X}", text) if ascii_only else text
