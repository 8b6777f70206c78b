"""Expands variables such as `${HOME}` in a client's entry as the client does it.

The syntax that a client supports is part of the format of its entries (`clients.py: HttpShape.variable`).
"""

import re
from collections.abc import Mapping
from pathlib import Path

from servers.common.machine import Machine

from .clients import Client

# `${NAME}` and `${NAME:-default}`
_PLAIN = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}")
# `$NAME`
_BARE = re.compile(r"\$([A-Za-z_]\w*)")
# `${env:NAME}`, `${userHome}` and `${/}`
_NAMED = re.compile(r"\$\{(?P<kind>[A-Za-z]+)(?::(?P<name>[^}]*))?\}|\$\{(?P<slash>/)\}")


class Variables:
    """The values of variables in the entries of one client, for a server that is started in `directory`."""

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
        """Return `text` with all variables expanded. Raises ValueError for a variable that is empty or not set, or
        whose value only the client knows."""
        syntax = self._client.http.variable if self._client.http is not None else None
        if syntax is None:
            return text
        # The other syntax is `${env:NAME}`.
        if syntax.format("X") == "${X}":
            text = _PLAIN.sub(lambda match: self.value(match["name"], match["default"]), text)
            if self._client.name != "gemini":
                return text
            # If there is no variable NAME, `$NAME` stays, since it may be ordinary text.
            return _BARE.sub(lambda match: self._environment.get(match[1], match[0]), text)

        # As in VS Code (Variables reference) and Cursor.
        def expand(match: re.Match[str]) -> str:
            kind = "pathSeparator" if match["slash"] else match["kind"]
            if kind == "env" and match["name"]:
                return self.value(match["name"])
            if kind in self._folders and match["name"] is None:
                return self._folders[kind]
            raise ValueError(f"only {self._client.title} knows the value of {match[0]}")

        return _NAMED.sub(expand, text)

    def value(self, name: str, default: str | None = None) -> str:
        """Return the value of the environment variable `name`, or `default`. Raises ValueError for neither."""
        # As in a shell, the default in `${NAME:-default}` also replaces an empty value.
        value = self._environment.get(name) or default
        if value is None:
            raise ValueError(
                f"{name}, which the entry of {self._client.title} names, is empty or not set in this shell"
            )
        return value
