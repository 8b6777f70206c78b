"""The plugins in their hosts: accepted by the host's own check, installed by its command, and started."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checks.bundle.programs import INSTALLING, fresh, run
from tests.servers.bundle.exports.test_exports import exported
from tests.wire import Wire

__all__ = ["exported"]

pytestmark = pytest.mark.timeout(1_500)

PROGRAMS = {
    "claude": "@anthropic-ai/claude-code/cli-wrapper.cjs",
    "codex": "@openai/codex/bin/codex.js",
    "gemini": "@google/gemini-cli/bundle/gemini.js",
}
PLUGIN = "filesystem@mcp-server-bundle"


class User:
    """A user with uv and a folder of notes, in whose home directory the hosts run."""

    def __init__(self, home: Path, cache: Path, installers: Path, hosts: Callable[[str], tuple[Path, Path]]) -> None:
        self.home, self.notes, self._hosts = home, home / "notes", hosts
        self.notes.mkdir()
        # Gemini CLI starts nothing in a folder that it does not trust, and keeps the variables of certificates from
        # servers, so uv has everything in its cache already.
        self.env = {**fresh(home, installers), "GEMINI_CLI_TRUST_WORKSPACE": "true", "UV_CACHE_DIR": str(cache)}

    def host(self, name: str, *words: str) -> str:
        node, folder = self._hosts(name)
        command = [str(node), str(folder / "node_modules" / PROGRAMS[name]), *words]
        done = subprocess.run(
            command, cwd=self.home, env=self.env, capture_output=True, text=True, timeout=INSTALLING
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout or done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where uv keeps what it has downloaded."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def user(tmp_path: Path, cache: Path, installers: Path, hosts: Callable[[str], tuple[Path, Path]]) -> User:
    return User(tmp_path, cache, installers, hosts)


def prepare(user: User, plugin: Path) -> None:
    """Make the environment of the plugin by uv, as its first start does."""
    run(["uv", "run", "--quiet", "--project", str(plugin), "mcp-bundle-filesystem", "--version"], user.home, user.env)


def test_claude_code_accepts_the_plugins_and_starts_one(user: User, exported: Path) -> None:
    plugin = str(exported / "filesystem" / "plugin")
    user.host("claude", "plugin", "validate", "--strict", str(exported))
    user.host("claude", "plugin", "validate", "--strict", "--profile", "directory", plugin)
    user.host("claude", "plugin", "marketplace", "add", str(exported))
    user.host("claude", "plugin", "install", PLUGIN, "--config", f"roots={user.notes}")
    user.host("claude", "plugin", "install", "everything@mcp-server-bundle")
    prepare(user, Path(plugin))
    lines = user.host("claude", "mcp", "list").splitlines()
    (line,) = [line for line in lines if line.startswith("plugin:filesystem:filesystem: ")]
    assert line.endswith(" - ✔ Connected")
    assert "Skills (1)  try-a-client" in user.host("claude", "plugin", "details", "everything@mcp-server-bundle")


async def test_codex_accepts_the_plugins_and_passes_on_variables(user: User, exported: Path) -> None:
    user.host("codex", "plugin", "marketplace", "add", str(exported))
    user.host("codex", "plugin", "add", PLUGIN)
    (server,) = json.loads(user.host("codex", "mcp", "list", "--json"))
    launch = server["transport"]
    assert "MCP_FILESYSTEM_ROOTS" in launch["env_vars"]
    env = {**user.env, "MCP_FILESYSTEM_ROOTS": str(user.notes)}
    prepare(user, Path(launch["cwd"]))
    command = [f"{env['PATH'].split(os.pathsep)[0]}/{launch['command']}", *launch["args"]]
    async with Wire(command, cwd=Path(launch["cwd"]), env=env) as started:
        assert (await started.initialize())["serverInfo"]["name"] == "filesystem"


def test_gemini_cli_accepts_an_extension_and_starts_it(user: User, exported: Path) -> None:
    plugin = str(exported / "filesystem" / "plugin")
    user.host("gemini", "extensions", "validate", plugin)
    user.host("gemini", "extensions", "install", plugin, "--consent", "--skip-settings")
    folder = user.home / ".gemini" / "extensions" / "mcp-bundle-filesystem"
    (folder / ".env").write_text(f"MCP_FILESYSTEM_ROOTS={user.notes}\n")  # the file of its settings
    prepare(user, folder)
    lines = user.host("gemini", "mcp", "list").splitlines()
    (line,) = [line for line in lines if "filesystem (from mcp-bundle-filesystem)" in line]
    assert line.startswith("✓ ")
    assert line.endswith(" - Connected")
