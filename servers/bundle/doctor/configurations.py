"""Which of our servers stand in the configuration of which client, and can the client read it?"""

import os
import re
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
from ..hosts.configured import Configured, as_configured, of_project, read_bytes, read_entries
from ..hosts.launching import launch_command
from .findings import Finding, fault, fine, warning

_LISTS = ("mcpServers", "servers", "context_servers")
_LAST = re.compile(r"[^\\/]*$")


class Launch(NamedTuple):
    """One of our servers as a client starts or reaches it."""

    client: Client
    file: Path
    directory: Path
    """Where it is started: clients do not agree, nor document it."""
    server: Configured
    entry: Entry
    words: tuple[str, ...] = ()
    """The arguments of the server itself, without those of what starts it."""
    is_foreign: bool = False
    """Whether it is the program of the bundle, which answers for servers of others."""

    @property
    def where(self) -> str:
        """How a finding names it."""
        return f"{self.client.title}, {self.server.name!r}"

    @property
    def another(self) -> str:
        """How to have the client start the server of this installation, or a file of the user's own."""
        if self.server.args[:1] and self.server.args[0].endswith(".py"):
            return f"correct {self.server.args[0]}"
        try:
            return f"in {self.file} let it start {shell_line(launch_command(self.entry))}"
        except ValueError as error:
            return str(error)


class Configuration(NamedTuple):
    """What was found in the files of the clients."""

    launches: list[Launch]
    findings: list[Finding]


def find_servers(
    machine: Machine, project: Path, entries: Sequence[Entry], clients: Sequence[Client]
) -> Configuration:
    """Reads the files of the `clients` that are there, all clients' where none is named: the user's files, and those
    of the `project`. Where BUNDLE is among the `entries`, those for `connect` and `run --join` are found, too."""
    found = Configuration([], [])
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
            _read(found, source, project, entries)
    return found


class _Source(NamedTuple):
    """One file of a client; `directory` is where its servers are started."""

    client: Client
    path: Path
    directory: Path

    @property
    def where(self) -> str:
        return f"{self.client.title}, {self.path}"


def _read(found: Configuration, source: _Source, project: Path, entries: Sequence[Entry]) -> None:
    client, path, where = source.client, source.path, source.where
    try:
        listed = {**read_entries(client, path), **of_project(client, path, project)}
        members = []
        if not listed and client.format != "toml":
            root = jsonc.parse(read_bytes(path) or b"", client.format == "jsonc")
            members = root.members() if root is not None else []
        # Another client would look there for servers, where this one finds none.
        other = next((one.name for one in members if one.name in _LISTS and one.name != client.key), None)
    except ValueError as error:
        reason = str(error).removeprefix(f"{path}: ")
        found.findings.append(fault(where, f"{client.title} can't read it: {reason}", _fix(client, path)))
        return
    if other is not None:
        fix = f"rename {other!r} to {client.key!r} in that file"
        found.findings.append(fault(where, f"its servers stand under {other!r}, which nobody reads", fix))
        return
    if client.format == "json" and (read_bytes(path) or b"").startswith(jsonc.BOM):
        what = f"it begins with a byte order mark, for which {client.title} may take it for an empty one"
        found.findings.append(warning(where, what, "save it as UTF-8 without a mark; `install` takes it out"))
    before = len(found.launches)
    for name, value in listed.items():
        _add(found, source, name, value, entries)
    count = len(found.launches) - before
    ours = f"{count} of {format_count(len(listed), 'server')} {'is' if count == 1 else 'are'} ours"
    found.findings.append(fine(where, f"can be read; {ours}"))


def _fix(client: Client, path: Path) -> str:
    if path.is_symlink() and not path.exists():
        return "the link leads nowhere: put the file back that it leads to, or remove the link"
    if path.is_file() and not os.access(path, os.R_OK):
        return f"let its owner read it: chmod u+rw '{path}'"
    return f"correct it in an editor, or remove it; until then {client.title} starts none of its servers"


def _add(found: Configuration, source: _Source, name: str, value: Any, entries: Sequence[Entry]) -> None:
    """Adds the server that `value` describes, where it is ours."""
    client = source.client
    try:
        server = as_configured(client, name, value)
    except ValueError as error:
        # It can't be seen whose it is, but for its name.
        if any(entry.name in name.lower() for entry in entries):
            what = f"{client.title} can't use it: {error}"
            found.findings.append(fault(source.where, what, f"correct the entry in {source.path}"))
        return
    ours = None if server is None else _ours(server, entries)
    if server is not None and ours is not None:
        is_foreign = ours[0] is BUNDLE
        found.launches.append(Launch(client, source.path, source.directory, server, *ours, is_foreign))


def _ours(server: Configured, entries: Sequence[Entry]) -> tuple[Entry, tuple[str, ...]] | None:
    """Which of the `entries` it is, and the arguments that are its own."""
    if server.url is not None:
        # `serve` has each at `/NAME/mcp`; a server by itself does not say in its URL which it is.
        named = {server.name, *server.url.partition("?")[0].split("/")}
        return next(((entry, ()) for entry in entries if entry.name in named), None)
    words = (server.command or "", *server.args)
    for number, word in enumerate(words):
        for entry in entries:
            rest = words[number + 1 :]
            # With other words the program of the bundle does not answer for servers.
            is_one = entry is not BUNDLE or rest[:1] == ("connect",) or (rest[:1] == ("run",) and "--join" in rest)
            if is_one and _starts(entry, word, words[number - 1] if number else ""):
                return entry, rest
    return None


def _starts(entry: Entry, word: str, before: str) -> bool:
    """Whether the word is its console script, its image, or its module after `-m`."""
    last = _LAST.search(word)
    name = last[0].removesuffix(".exe").partition(":")[0] if last else ""
    return name in {entry.script, entry.image} if before != "-m" else word == entry.module
