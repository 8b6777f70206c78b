"""A new user with the wheel: an empty home directory, a minimal PATH, and the files of each installer."""

import json
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.checks.bundle.conftest import ROOT, TRIED
from tests.checks.bundle.programs import INSTALLING, fresh, run
from tests.wire import Wire

pytestmark = pytest.mark.timeout(1_500)

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SERVERS = ("fetch", "filesystem", "postgres", "prompts", "sqlite")


class User:
    """A user who types commands."""

    def __init__(self, home: Path, installers: Path) -> None:
        self.home = home
        self.env = fresh(home, installers)

    def types(self, *words: str) -> str:
        return run(list(words), self.home, self.env)

    def fails(self, *words: str) -> str:
        """Returns the last line on stderr of a refused command."""
        done = subprocess.run(
            words, cwd=self.home, env=self.env, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=INSTALLING,
        )  # fmt: skip
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stderr.splitlines()[-1]


@pytest.fixture
def user(tmp_path: Path, installers: Path) -> User:
    (tmp_path / "Documents").mkdir()
    return User(tmp_path, installers)


def with_pip(user: User, given: str) -> list[str]:
    if not (user.home / "env").exists():
        user.types(sys.executable, "-m", "venv", "env")
    user.types("env/bin/pip", "install", "--quiet", given)
    return [f"{user.home}/env/bin/"]


def with_pipx(user: User, given: str) -> list[str]:
    user.types("pipx", "install", given)
    return [f"{user.home}/.local/bin/"]


def with_uv(user: User, given: str) -> list[str]:
    user.types("uv", "tool", "install", given)
    return [f"{user.home}/.local/bin/"]


def with_uvx(_: User, given: str) -> list[str]:
    return ["uvx", "--from", given, ""]


Way = Callable[[User, str], list[str]]
"""Installs what it is given; what stands before the name of a program of the bundle."""
WAYS: dict[str, Way] = {"pip": with_pip, "pipx": with_pipx, "uv": with_uv, "uvx": with_uvx}


def program(before: list[str], name: str) -> list[str]:
    return [*before[:-1], before[-1] + name]


@pytest.mark.parametrize("name", WAYS)
async def test_an_installed_server_works_permanently(
    name: str, user: User, wheel: Path, record_property: Callable[[str, Any], None]
) -> None:
    start = time.monotonic()
    before = WAYS[name](user, f"{wheel}[catalog,filesystem]")
    words = ("install", "filesystem", "Documents", "--client", "claude-desktop")
    *_, last, _then = user.types(*program(before, "mcp-server-bundle"), *words).splitlines()
    seconds = time.monotonic() - start
    record_property(TRIED, (name, seconds, last))
    assert last == "works: 12 tools"

    user.types("uv", "cache", "clean")
    written = json.loads((user.home / ".config" / "Claude" / "claude_desktop_config.json").read_text())
    entry = written["mcpServers"]["filesystem"]
    env = {"HOME": str(user.home), "PATH": "/usr/bin:/bin", **entry.get("env", {})}
    command = [entry["command"], *entry["args"]]
    run([*command, "--version"], user.home, env)  # uvx installs it again
    async with Wire(command, cwd=user.home, env=env) as server:
        assert (await server.initialize())["serverInfo"]["name"] == "filesystem"


@pytest.mark.parametrize("name", WAYS)
async def test_the_printed_command_installs_the_missing_extra(name: str, user: User, wheel: Path) -> None:
    server = program(WAYS[name](user, str(wheel)), "mcp-bundle-sqlite")
    line = user.fails(*server, "--demo").partition("this needs the extra 'sqlite': ")[2]
    words = shlex.split(line)
    if name == "uvx":
        server = words
    else:
        user.types(*words)
    assert user.types(*server, "--version").startswith("sqlite ")
    async with Wire([*server, "--demo"], cwd=user.home, env=user.env) as started:
        assert (await started.initialize())["serverInfo"]["name"] == "sqlite"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where uv keeps what it has downloaded, for all who install the same packages."""
    return {"UV_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}


@pytest.mark.parametrize("extra", [extra for extra in EXTRAS if extra != "dev"])
def test_doctor_starts_with_any_extra(extra: str, user: User, wheel: Path, cache: dict[str, str]) -> None:
    command = ["uvx", "--quiet", "--from", f"{wheel}[{extra}]", "mcp-server-bundle", "doctor"]
    env = user.env | cache
    done = subprocess.run(command, cwd=user.home, env=env, capture_output=True, text=True, timeout=INSTALLING)
    lines = done.stdout.splitlines()
    assert done.stderr == ""
    for server in SERVERS:
        is_there = extra in (server, "all")
        found = f"ok      {server}: the libraries of its extra '{server}' are installed"
        assert (found in lines) == is_there, done.stdout
    assert done.returncode == (0 if extra in ("all", "catalog") else 1)
    if done.returncode:
        assert lines[-1].startswith("fault   doctor: clients and servers were not checked, because the extra ")
        assert "Fix: uvx --from " in lines[-1]
