"""SERVER on a command line: names, commands, URLs, files and entries of clients."""

import json
import os
import sys
from pathlib import Path

import pytest

from servers.bundle.hosts.clients import get_client
from servers.bundle.hosts.variables import Variables
from servers.bundle.terminal.exit_codes import Misuse
from servers.bundle.terminal.targets import ServerChoice, Target, find_target
from servers.common.machine import this_machine


@pytest.fixture
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (own_home / "project").mkdir()
    monkeypatch.chdir(own_home / "project")
    return own_home


def write(path: Path, key: str, **servers: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({key: servers}))


def test_a_target_is_a_server_name_a_command_or_a_url() -> None:
    command = find_target(ServerChoice("filesystem", ("--allow-write", "/data"))).command
    assert command[-2:] == ("--allow-write", "/data")
    assert find_target(ServerChoice("-", ("/bin/server", "-v"))) == Target("server", ("/bin/server", "-v"))
    # Its name has no secrets.
    assert find_target(ServerChoice("https://me:secret@example.com/mcp?key=secret")).name == "https://example.com/mcp"


def test_a_python_file_is_started_by_this_python(home: Path) -> None:
    with pytest.raises(Misuse, match=r"there is no file .*dice\.py"):
        find_target(ServerChoice("dice.py"))
    file = home / "project" / "dice.py"
    file.touch()
    target = find_target(ServerChoice("dice.py", ("-v",)))
    assert (target.name, target.command) == ("dice.py", (sys.executable, str(file), "-v"))


def test_a_python_file_gets_its_options_and_python_path_from_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "project" / "dice.py").touch()
    here = {"MCP_DICE_SIDES": "20", "MCP_DICE_SEED": "1", "PYTHONPATH": "lib"}
    for name, value in {**here, "MCP_TRANSPORT": "http", "API_KEY": "secret"}.items():
        monkeypatch.setenv(name, value)
    env = find_target(ServerChoice("dice.py", env={"MCP_DICE_SEED": "2"})).env
    assert {**env, **here, "MCP_DICE_SEED": "2"} == env
    assert not env.keys() & {"MCP_TRANSPORT", "API_KEY"}


REFUSED = [
    (ServerChoice("files"), "there is no server 'files' in the catalog; available: filesystem, "),
    (ServerChoice("-"), "- means a command"),
    (ServerChoice("ftp://example.com"), "the URL of a server must start with"),
    (ServerChoice("http://example.com", ("--x",)), "is started elsewhere"),
    (ServerChoice("http://me:x@example.com", headers={"Authorization": "b"}), "the URL already has a user name"),
    (ServerChoice("filesystem", headers={"a": "b"}), "headers and tokens need a URL"),
]


def test_an_unknown_target_is_refused() -> None:
    for choice, why in REFUSED:
        with pytest.raises(Misuse, match=why):
            find_target(choice)


def test_an_entry_of_a_client_is_started_unchanged(home: Path) -> None:
    write(home / ".cursor/mcp.json", "mcpServers", x={"command": "x", "args": ["a"], "env": {"KEY": "v"}})
    target = find_target(ServerChoice("cursor:x", ("b",)))
    assert (target.name, target.command, target.directory) == ("cursor:x", ("x", "a", "b"), home)
    assert (target.env["KEY"], target.env["PATH"]) == ("v", os.environ["PATH"])


def test_project_entries_override_user_entries(home: Path) -> None:
    write(home / ".cursor/mcp.json", "mcpServers", x={"command": "user"})
    write(home / "project/.cursor/mcp.json", "mcpServers", x={"command": "project"})
    target = find_target(ServerChoice("cursor:x"))
    assert (target.command, target.directory) == (("project",), home / "project")
    # Claude Code has servers of one project in its own file.
    local = {"mcpServers": {"x": {"command": "local"}}}
    write(home / ".claude.json", "projects", **{(home / "project").as_posix(): local})
    assert find_target(ServerChoice("claude-code:x")).command == ("local",)


def test_an_entry_with_a_url_includes_its_token(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    write(
        home / ".claude.json", "mcpServers",
        x={"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    )  # fmt: skip
    target = find_target(ServerChoice("claude-code:x"))
    assert (target.url, dict(target.headers)) == ("https://example.com/mcp", {"Authorization": "Bearer secret"})


UNUSABLE: list[tuple[dict, str]] = [
    ({"command": "x", "disabled": True}, "'x' is disabled in "),
    ({"command": "${env:NOT_SET}"}, "NOT_SET, which the entry of Cursor names, is empty or not set in this shell"),
    ({"command": "${input:key}"}, r"only Cursor knows the value of \$\{input:key\}"),
    ({}, "'x' has no 'command'"),
]


def test_an_unusable_entry_is_refused(home: Path) -> None:
    for entry, why in UNUSABLE:
        write(home / ".cursor/mcp.json", "mcpServers", x=entry)
        with pytest.raises((Misuse, ValueError), match=why):
            find_target(ServerChoice("cursor:x"))
    write(home / ".cursor/mcp.json", "mcpServers", files={"command": "x"})
    with pytest.raises(Misuse, match=r"there is no server 'fles'; did you mean 'files'\? \(Cursor\)"):
        find_target(ServerChoice("cursor:fles"))


def test_variables_are_expanded_as_by_the_client(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET", "set")
    slash = "\\" if sys.platform == "win32" else "/"
    meant = {
        ("claude-code", "${SET}-${NOT_SET:-other}"): "set-other",
        ("claude-code", "$SET"): "$SET",
        ("gemini", "$SET-$NOT_SET"): "set-$NOT_SET",
        ("vscode", "${env:SET}${/}${workspaceFolderBasename}"): f"set{slash}project",
        ("claude-desktop", "${SET}"): "${SET}",
        ("zed", "${SET}"): "${SET}",
    }
    for (client, text), expected in meant.items():
        assert Variables(get_client(client), this_machine(), home / "project").fill_in(text) == expected
