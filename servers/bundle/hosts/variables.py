"""The variables in an entry of a client, such as `${HOME}`, filled in as the client does it.

Which form a client knows is part of the shape of its entries (`clients.py: HttpShape.variable`).
"""

import re
from collections.abc import Mapping
from pathlib import Path

from servers.common.machine import Machine

from .clients import Client

_PLAIN = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}")
_BARE = re.compile(r"\$([A-Za-z_]\w*)")
_NAMED = re.compile(r"\$\{(?P<kind>[A-Za-z]+)(?::(?P<name>[^}]*))?\}|\$\{(?P<slash>/)\}")


class Variables:
    """What the variables mean to one client, for a server that is started in `directory`."""

    def __init__(self, client: Client, machine: Machine, directory: Path) -> None:
        self._client = client
        self._environment: Mapping[str, str] = machine.environment
        self._folders = {
            "userHome": str(machine.home),
            "workspaceFolder": str(directory),
            "workspaceFolderBasename": directory.name,
            "pathSeparator": "\\" if machine.system == "windows" else "/",
        }

    def fill_in(self, text: str) -> str:
        """The text as the server gets it. Raises ValueError for a variable that is not set, or that only the client
        knows."""
        form = self._client.http.variable if self._client.http is not None else None
        if form is None:
            return text
        if form.format("X") == "${X}":
            text = _PLAIN.sub(lambda found: self.value(found["name"], found["default"]), text)
            if self._client.name != "gemini":
                return text
            # `$NAME` stays where there is no such variable, as it may be no name at all.
            return _BARE.sub(lambda found: self._environment.get(found[1], found[0]), text)
        return _NAMED.sub(self._named, text)

    def value(self, name: str, default: str | None = None) -> str:
        """The value of a variable of this shell. Raises ValueError where there is none, nor a default."""
        value = self._environment.get(name) or default
        if value is None:
            raise ValueError(f"{name}, which the entry of {self._client.title} names, is not set in this shell")
        return value

    def _named(self, found: re.Match[str]) -> str:
        """What `${env:NAME}` or `${userHome}` stands for (VS Code, Variables reference; Cursor has the same)."""
        kind = "pathSeparator" if found["slash"] else found["kind"]
        if kind == "env" and found["name"]:
            return self.value(found["name"])
        if kind in self._folders and found["name"] is None:
            return self._folders[kind]
        raise ValueError(f"only {self._client.title} knows what {found[0]} stands for")
