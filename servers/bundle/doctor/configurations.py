"""Finds the bundle's servers in clients' configurations, and checks that each client can read its file."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from servers.catalog import Entry
from servers.common.machine import Machine
from shared.program.installation import shell_line
from shared.text import format_count

from ..host_entries import BUNDLE
from ..hosts import jsonc
from ..hosts.clients import CLIENTS, SCOPES, Client
from ..hosts.configured import ConfiguredServer, parse_entry, project_entries, read_bytes, read_entries
from ..hosts.launching import launch_command
from .findings import Finding, fault, fine, warning

_LISTS = ("mcpServers", "servers", "context_servers")
_FILE_NAME = re.compile(r"[^\\/]*$")


class Launch(NamedTuple):
    """An entry of a client for one of the bundle's servers: how the client starts or reaches it."""

    client: Client
    file: Path
    directory: Path
    """The directory in which the server is probably started; clients do not document it."""
    server: ConfiguredServer
    entry: Entry
    words: tuple[str, ...] = ()
    """The arguments of the server itself, without the arguments of the command that starts it."""
    is_outside_catalog: bool = False
    """True if the server is not in the catalog: the entry starts `connect`, `run --join`, or the user's own file."""

    @property
    def where(self) -> str:
        """The name of the entry in findings."""
        return f"{self.client.title}, {self.server.name!r}"

    @property
    def own_file(self) -> str:
        """The user's own Python file that the entry starts; empty if it starts anything else."""
        first = self.server.args[0] if self.server.args else ""
        return first if first.endswith(".py") else ""

    @property
    def advice(self) -> str:
        """What the user can do if the server does not start: make the entry start the server of this installation, or
        correct the user's own file."""
        if self.own_file:
            return f"correct {self.own_file}"
        try:
            return f"edit {self.file} to start {shell_line(launch_command(self.entry))}"
        except ValueError as error:
            return str(error)


class Configuration(NamedTuple):
    """The bundle's servers in the files of clients, and the findings about these files."""

    launches: list[Launch]
    findings: list[Finding]


def find_servers(
    machine: Machine, project: Path, entries: Sequence[Entry], clients: Sequence[Client]
) -> Configuration:
    """Find the servers `entries` in the configurations of `clients`, or of all clients if that is empty: in the files
    of the user, and in those of the `project`. If BUNDLE is among `entries`, the result also has the entries that
    start `connect`, `run --join`, or a user's own file with this Python."""
    configuration = Configuration([], [])
    seen: set[Path] = set()
    sources = [
        _Source(client, client.file(machine, scope, project), Path(machine.home) if scope == "user" else project)
        for client in clients or CLIENTS
        for scope in SCOPES
        if scope == "user" or client.project is not None
    ]
    for source in sources:
        if source.path not in seen and os.path.lexists(source.path):
            seen.add(source.path)
            _read_file(configuration, source, project, entries)
    return configuration


class _Source(NamedTuple):
    """One file of a client, and the directory in which the client starts its servers."""

    client: Client
    path: Path
    directory: Path

    @property
    def where(self) -> str:
        return f"{self.client.title}, {self.path}"


def _read_file(configuration: Configuration, source: _Source, project: Path, entries: Sequence[Entry]) -> None:
    client, path, where = source.client, source.path, source.where
    try:
        listed = {**read_entries(client, path), **project_entries(client, path, project)}
        members = []
        if not listed and client.format != "toml":
            root = jsonc.parse(read_bytes(path) or b"", client.format == "jsonc")
            members = root.members() if root is not None else []
        # If there are no servers under this client's key, they may be under the key of another client.
        other = next((member.name for member in members if member.name in _LISTS and member.name != client.key), None)
    except ValueError as error:
        reason = str(error).removeprefix(f"{path}: ")
        fix = f"correct it in an editor, or remove it; until then {client.title} starts none of its servers"
        if path.is_symlink() and not path.exists():
            fix = "the link is broken: restore the file that it points to, or remove the link"
        elif path.is_file() and not os.access(path, os.R_OK):
            fix = f"let its owner read it: chmod u+rw '{path}'"
        configuration.findings.append(fault(where, f"{client.title} can't read it: {reason}", fix))
        return
    if other is not None:
        fix = f"rename {other!r} to {client.key!r} in that file"
        configuration.findings.append(fault(where, f"its servers are under {other!r}, which is not read", fix))
        return
    if client.format == "json" and (read_bytes(path) or b"").startswith(jsonc.BOM):
        what = f"it starts with a byte order mark, so {client.title} may treat it as empty"
        configuration.findings.append(
            warning(where, what, "save it as UTF-8 without a byte order mark; `install` removes it")
        )
    before = len(configuration.launches)
    for name, value in listed.items():
        _add_launch(configuration, source, name, value, entries)
    count = len(configuration.launches) - before
    matched = f"{count} of {format_count(len(listed), 'server')} {'is' if count == 1 else 'are'} ours"
    configuration.findings.append(fine(where, f"can be read; {matched}"))


def _add_launch(
    configuration: Configuration, source: _Source, name: str, value: Any, entries: Sequence[Entry]
) -> None:
    """Add the entry called `name` with the content `value` if it is for one of the bundle's servers."""
    client = source.client
    try:
        server = parse_entry(client, name, value)
    except ValueError as error:
        # The content is invalid, so only the name suggests whether it is for one of the bundle's servers.
        if any(entry.name in name.lower() for entry in entries):
            what = f"{client.title} can't use it: {error}"
            configuration.findings.append(fault(source.where, what, f"correct the entry in {source.path}"))
        return
    matched = None if server is None else _match_entry(server, entries)
    if server is not None and matched is not None:
        is_outside_catalog = matched[0] is BUNDLE
        configuration.launches.append(
            Launch(client, source.path, source.directory, server, *matched, is_outside_catalog)
        )


def _match_entry(server: ConfiguredServer, entries: Sequence[Entry]) -> tuple[Entry, tuple[str, ...]] | None:
    """Return the entry of the catalog for `server`, and the arguments of the server itself; None if it is none of
    `entries`."""
    if server.url is not None:
        # `serve` has each server at `/NAME/mcp`. The URL of a single server does not contain its name, so compare
        # that of the entry too.
        named = {server.name, *server.url.partition("?")[0].split("/")}
        return next(((entry, ()) for entry in entries if entry.name in named), None)
    words = (server.command or "", *server.args)
    if BUNDLE in entries and server.command == sys.executable and server.args and server.args[0].endswith(".py"):
        return BUNDLE, server.args  # as `install FILE.py` writes it
    for number, word in enumerate(words):
        rest = words[number + 1 :]
        # Only with these commands, the bundle's program is a server.
        has_servers = rest[:1] == ("connect",) or (rest[:1] == ("run",) and "--join" in rest)
        file_name = _FILE_NAME.search(word)
        program = file_name[0].removesuffix(".exe").partition(":")[0] if file_name else ""
        is_module = number > 0 and words[number - 1] == "-m"
        for entry in entries:
            # A container image may have a tag after a colon, which `partition` has removed.
            is_started = word == entry.module if is_module else program in {entry.script, entry.image}
            if is_started and (entry is not BUNDLE or has_servers):
                return entry, rest
    return None
