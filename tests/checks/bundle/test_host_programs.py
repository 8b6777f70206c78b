"""Entries of `install` in the clients' own programs, which also write to the same file."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from servers.bundle.commands.install import main as install
from servers.bundle.commands.install import uninstall
from servers.bundle.hosts.clients import get_client
from servers.bundle.hosts.configured import read_entries
from servers.bundle.hosts.launching import launch_command
from servers.catalog import load_catalog
from servers.common.machine import this_machine

pytestmark = pytest.mark.timeout(600)

(COMMAND,) = launch_command(load_catalog().entry("filesystem"))


class Host(NamedTuple):
    """The program of a client."""

    client: str
    folder: str
    program: str
    add: tuple[str, ...]
    """Has it know another server."""


HOSTS = [
    Host("claude-code", "claude", "@anthropic-ai/claude-code/cli-wrapper.cjs", ("-s", "user", "other", "/bin/true")),
    Host("codex", "codex", "@openai/codex/bin/codex.js", ("other", "--", "/bin/true")),
    Host("gemini", "gemini", "@google/gemini-cli/bundle/gemini.js", ("-s", "user", "other", "/bin/true")),
]
Run = Callable[..., str]
each = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.client)


@pytest.fixture
def run(host: Host, hosts: Callable[[str], tuple[Path, Path]], home: Path) -> Run:
    """Runs the program in the home directory; returns its output."""
    node, folder = hosts(host.folder)
    # Gemini CLI starts nothing in an untrusted folder.
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def told(*words: str) -> str:
        command = [str(node), str(folder / "node_modules" / host.program), "mcp", *words]
        done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        # Gemini CLI prints its list to stderr.
        return done.stdout or done.stderr

    return told


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in [name for name in os.environ if name.startswith(("CLAUDE", "CODEX", "GEMINI", "XDG"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    return tmp_path


def listed(host: Host, run: Run) -> list[str]:
    """Returns the line of the program for each server."""
    if host.client != "codex":
        return [line for line in run("list").splitlines() if ": /" in line]
    servers = json.loads(run("list", "--json"))
    return [f"{one['name']}: {one['enabled']} {json.dumps(one['transport'])}" for one in servers]


def expected(host: Host, home: Path) -> str:
    started = f"filesystem: {COMMAND} {home}/notes"
    if host.client == "claude-code":
        return f"{started} - ✔ Connected"
    if host.client == "gemini":
        return f"✓ {started} (stdio) - Connected"
    transport = {"type": "stdio", "command": COMMAND, "args": [f"{home}/notes"], "env": {"MCP_LOG_LEVEL": "info"}}
    return f"filesystem: True {json.dumps({**transport, 'env_vars': [], 'cwd': None})}"


@each
def test_the_program_lists_installed_and_no_uninstalled_servers(host: Host, run: Run, home: Path) -> None:
    words = ("filesystem", "--client", host.client)
    assert install([*words, "notes", "--env", "MCP_LOG_LEVEL=info"]) == 0
    assert listed(host, run) == [expected(host, home)]
    assert uninstall(words) == 0
    assert listed(host, run) == []


@each
def test_a_server_added_by_the_program_stays(host: Host, run: Run, home: Path) -> None:
    words = ("filesystem", "--client", host.client)
    assert install([*words, "notes"]) == 0
    run("add", *host.add)
    assert uninstall(words) == 0
    client = get_client(host.client)
    entries = read_entries(client, client.file(this_machine(), "user", home))
    assert [entry["command"] for entry in entries.values()] == ["/bin/true"]


@each
def test_text_written_by_the_program_stays_byte_for_byte(host: Host, run: Run, home: Path) -> None:
    run("add", *host.add)
    path = get_client(host.client).file(this_machine(), "user", home)
    before = path.read_bytes()
    words = ("filesystem", "--client", host.client)
    assert install([*words, "notes"]) == 0
    assert uninstall(words) == 0
    assert path.read_bytes() == before
