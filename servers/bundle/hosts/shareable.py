"""Portable entries for the file of a project, which other people use too. Paths in the project or in the user's home
directory are written with the client's placeholders for these directories."""

import re
from collections.abc import Iterable
from pathlib import Path

from servers.common.machine import Machine

from .clients import Client
from .configured import ConfiguredServer

_CURLY = {"workspaceFolder": "${workspaceFolder}", "userHome": "${userHome}"}
_FORMS = {
    # VS Code: https://code.visualstudio.com/docs/reference/variables-reference; Cursor: https://cursor.com/docs/mcp
    "vscode": _CURLY,
    "cursor": _CURLY,
    # https://code.claude.com/docs/en/mcp, "Environment variable expansion"; Gemini CLI has the same in its settings.
    "claude-code": {"userHome": "${HOME}"},
    "gemini": {"userHome": "${HOME}"},
}


def shareable(client: Client, machine: Machine, project: Path, server: ConfiguredServer) -> ConfiguredServer:
    """Return the server with the client's placeholders in paths in the project or in the user's home directory."""
    forms = _FORMS.get(client.name, {})
    if machine.system == "windows" and client.name not in ("vscode", "cursor"):
        return server  # Windows has no variable HOME
    folders = [
        (str(path), forms[name])
        for name, path in (("workspaceFolder", project), ("userHome", machine.home))
        if name in forms
    ]

    def replace(text: str) -> str:
        for folder, form in folders:
            text = _folder_pattern(folder).sub(lambda _, form=form: form, text)  # type: ignore[misc]
        return text

    command = None if server.command is None else replace(server.command)
    env = {name: replace(value) for name, value in server.env.items()}
    return server._replace(command=command, args=tuple(map(replace, server.args)), env=env)


def has_own_paths(machine: Machine, project: Path, server: ConfiguredServer) -> bool:
    """Return True if the entry contains a path in the project or in the user's home directory, which other machines
    don't have."""
    texts: Iterable[str] = (server.command or "", *server.args, *server.env.values())
    own = [_folder_pattern(str(folder)) for folder in (project, machine.home)]
    return any(pattern.search(text) for text in texts for pattern in own)


def _folder_pattern(folder: str) -> re.Pattern[str]:
    """Return a pattern that matches the folder at the beginning of a path in a text."""
    return re.compile(rf"(?<![\w./\\-]){re.escape(folder)}(?=[/\\:]|$)")
