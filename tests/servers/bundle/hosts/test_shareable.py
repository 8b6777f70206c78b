"""Paths of this machine in a shared entry."""

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from servers.bundle.hosts.clients import get_client
from servers.bundle.hosts.configured import ConfiguredServer
from servers.bundle.hosts.shareable import has_own_paths, shareable
from servers.common.machine import Machine

MACHINE = Machine("linux", PurePosixPath("/home/ann"), {})
PROJECT = Path("/home/ann/work")
SHARED = {
    "/home/ann/work": "${workspaceFolder}",
    "/home/ann/work/notes:ro": "${workspaceFolder}/notes:ro",
    "--root=/home/ann/x": "--root=${userHome}/x",
    "/home/anna": "/home/anna",
    "/home/ann/workshop": "${userHome}/workshop",
    "/mnt/home/ann": "/mnt/home/ann",
}


@pytest.mark.parametrize("text", SHARED)
def test_a_path_is_written_with_the_variable_of_its_folder(text: str) -> None:
    server = ConfiguredServer("a", text, (text,), {"X": text})
    shown = SHARED[text]
    assert shareable(get_client("vscode"), MACHINE, PROJECT, server) == ConfiguredServer(
        "a", shown, (shown,), {"X": shown}
    )
    assert has_own_paths(MACHINE, PROJECT, server) is (shown != text)


def test_a_client_without_variables_keeps_absolute_paths() -> None:
    server = ConfiguredServer("a", "/home/ann/x")
    assert shareable(get_client("codex"), MACHINE, PROJECT, server) == server
    windows = Machine("windows", PureWindowsPath(r"C:\Users\ann"), {})
    there = ConfiguredServer("a", r"C:\Users\ann\x")
    assert shareable(get_client("claude-code"), windows, PROJECT, there) == there
