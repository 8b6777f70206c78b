"""Which of our servers stand in the configuration of which client, and can the client read it?"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..catalog import Entry
from ..hosts import jsonc
from ..hosts.clients import CLIENTS, SCOPES, Client, Machine
from ..hosts.configured import Configured, as_configured, read_bytes, read_entries
from .findings import Finding, fault, fine

__all__ = ["Configuration", "Launch", "of_machine"]

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

    @property
    def where(self) -> str:
        """How a finding names it."""
        return f"{self.client.title}, {self.server.name!r}"


class Configuration(NamedTuple):
    """What was found in the files of the clients."""

    launches: list[Launch]
    findings: list[Finding]


def of_machine(machine: Machine, project: Path, entries: Sequence[Entry], clients: Sequence[Client]) -> Configuration:
    """Reads the files of the `clients` that are there: the user's, and those of the `project`."""
    found = Configuration([], [])
    seen: set[Path] = set()
    for client, path, directory in _places(machine, project, clients):
        if path not in seen and os.path.lexists(path):
            seen.add(path)
            _read(found, client, path, (directory, project), entries)
    return found


def _places(machine: Machine, project: Path, clients: Sequence[Client]) -> Iterator[tuple[Client, Path, Path]]:
    for client in clients or CLIENTS:
        for scope in SCOPES:
            if scope == "user":
                yield client, client.file(machine, scope, project), Path(machine.home)
            elif client.project is not None:
                yield client, client.file(machine, scope, project), project


def _read(
    found: Configuration, client: Client, path: Path, places: tuple[Path, Path], entries: Sequence[Entry]
) -> None:
    directory, project = places
    where = f"{client.title}, {path}"
    try:
        listed = {**read_entries(client, path), **_of_project(client, path, project)}
        other = _other_list(client, path) if not listed else None
    except ValueError as error:
        reason = str(error).removeprefix(f"{path}: ")
        found.findings.append(fault(where, f"{client.title} can't read it: {reason}", _cure(client, path)))
        return
    if other is not None:
        cure = f"rename {other!r} to {client.key!r} in that file"
        found.findings.append(fault(where, f"its servers stand under {other!r}, which nobody reads", cure))
    before = len(found.launches)
    for name, value in listed.items():
        _add(found, Launch(client, path, directory, Configured(name), entries[0]), value, entries)
    count = len(found.launches) - before
    found.findings.append(fine(where, f"can be read; {count} of its {len(listed)} servers are ours"))


def _of_project(client: Client, path: Path, project: Path) -> dict[str, Any]:
    """What Claude Code has for a project by itself: where `claude mcp add` puts a server unless it is told otherwise
    (https://code.claude.com/docs/en/mcp, "Local scope")."""
    root = jsonc.parse(read_bytes(path) or b"", False) if client.name == "claude-code" else None
    found = root.value() if root is not None and root.is_object else {}
    for key in ("projects", project.as_posix(), client.key):
        found = found.get(key)
        if not isinstance(found, dict):
            return {}
    return found


def _cure(client: Client, path: Path) -> str:
    if path.is_symlink() and not path.exists():
        return "the link leads nowhere: put the file back that it leads to, or remove the link"
    if path.is_file() and not os.access(path, os.R_OK):
        return f"let its owner read it: chmod u+rw '{path}'"
    return f"mend it in an editor, or remove it; until then {client.title} starts none of its servers"


def _other_list(client: Client, path: Path) -> str | None:
    """The key under which another client would look for servers, where this one finds none."""
    root = None if client.format == "toml" else jsonc.parse(read_bytes(path) or b"", client.format == "jsonc")
    members = root.members() if root is not None else []
    return next((one.name for one in members if one.name in _LISTS and one.name != client.key), None)


def _add(found: Configuration, launch: Launch, value: Any, entries: Sequence[Entry]) -> None:
    """Adds the launch, where the server that `value` describes is ours."""
    client, name = launch.client, launch.server.name
    try:
        server = as_configured(client, name, value)
    except ValueError as error:
        # It can't be seen whose it is, but for its name.
        if any(entry.name in name.lower() for entry in entries):
            cure = f"mend the entry in {launch.file}"
            found.findings.append(fault(launch.where, f"{client.title} can't use it: {error}", cure))
        return
    ours = None if server is None else _ours(server, entries)
    if server is not None and ours is not None:
        entry, words = ours
        found.launches.append(launch._replace(server=server, entry=entry, words=words))


def _ours(server: Configured, entries: Sequence[Entry]) -> tuple[Entry, tuple[str, ...]] | None:
    """Which of the `entries` it is, and the arguments that are its own."""
    if server.url is not None:
        # `serve` has each at `/NAME/mcp`; a server by itself does not say in its URL which it is.
        named = {server.name, *server.url.partition("?")[0].split("/")}
        return next(((entry, ()) for entry in entries if entry.name in named), None)
    words = (server.command or "", *server.args)
    for number, word in enumerate(words):
        for entry in entries:
            if _starts(entry, word, words[number - 1] if number else ""):
                return entry, words[number + 1 :]
    return None


def _starts(entry: Entry, word: str, before: str) -> bool:
    """Whether the word is its console script, its image, or its module after `-m`."""
    last = _LAST.search(word)
    name = last[0].removesuffix(".exe").partition(":")[0] if last else ""
    return name in {entry.script, entry.image} if before != "-m" else word == entry.module
