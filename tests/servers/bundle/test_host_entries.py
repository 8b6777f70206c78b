"""Entries outside the catalog: servers at a URL, for clients with and without URLs, and joined servers."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from servers.bundle.commands import config
from servers.bundle.commands.install import main as install
from servers.bundle.commands.install import uninstall
from servers.bundle.host_entries import BUNDLE, name_of
from servers.bundle.hosts.launching import launch_command
from tests.servers.bundle.commands.test_connect import everything
from tests.servers.bundle.refusals import not_refused, refused

URL = "https://mcp.example.org/mcp"
PROGRAM = launch_command(BUNDLE)


@pytest.fixture(autouse=True)
def home(own_home: Path) -> Path:
    (own_home / "token").write_text("hush\n")
    return own_home


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Returns the servers that `config` prints for Claude Desktop, or for Codex."""
    assert config.main(words) == 0
    text = capsys.readouterr().out
    servers: dict[str, Any] = json.loads(text)["mcpServers"] if text[0] == "{" else tomllib.loads(text)["mcp_servers"]
    return servers


def starting(*words: str) -> dict[str, Any]:
    return {"command": PROGRAM[0], "args": [*PROGRAM[1:], *words]}


# A server at a URL


def test_a_client_without_url_support_starts_connect(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--url", URL, "--client", "claude-desktop")
    assert printed(capsys, *words) == {"mcp-example-org": starting("connect", URL)}
    # The token is named by the absolute path of its file.
    token = ("--token-file", str(home / "token"))
    assert printed(capsys, *words, "--token-file", "token", "--name", "remote") == {
        "remote": starting("connect", URL, *token)
    }
    # With the name of a server it is an option of that server.
    (entry,) = printed(capsys, "fetch", "--client", "claude-desktop", "--token-file", "token").values()
    assert entry["args"] == [*token]


def test_a_client_with_url_support_gets_the_url_or_starts_connect(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def entry(*words: str) -> dict[str, Any]:
        (found,) = printed(capsys, "--client", "codex", *words).values()
        return found

    assert entry("--url", URL, "--token-variable", "TOKEN") == {"url": URL, "bearer_token_env_var": "TOKEN"}
    assert entry("--url", URL, "--connect") == starting("connect", URL)
    token = ("--token-file", str(home / "token"))
    assert entry("--url", URL, *token) == starting("connect", URL, *token)
    env = {"MCP_CONNECT_TOKEN": "hush"}
    assert entry("--url", URL, "--env", "MCP_CONNECT_TOKEN=hush") == {**starting("connect", URL), "env": env}
    assert entry("--url", "ws://127.0.0.1:8000/mcp") == starting("connect", "ws://127.0.0.1:8000/mcp")


def test_an_entry_is_named_after_its_url() -> None:
    names = {
        "https://mcp.example.org/mcp": "mcp-example-org",
        "http://127.0.0.1:8000/sqlite/mcp": "sqlite",
        "http://127.0.0.1:8000/sqlite/sse": "sqlite",
        "http://127.0.0.1:8000/": "127-0-0-1",
        "http://[::1]:8000/mcp": "1",
    }
    assert {url: name_of(url) for url in names} == names


REFUSED = [
    (["--url", "example.org/mcp"], "the URL of a server must start with http://, https://, ws:// or wss:// and have"),
    (["--url", "https://ann:hush@example.org/mcp"], "everyone who sees the URL sees its user name and password"),
    (["--url", URL, "--token-file", "nowhere"], "--token-file: nowhere: No such file or directory"),
    (["--url", URL, "--token-variable", "TOKEN"], "use --token-file: Claude Desktop reaches"),
    (["--url", URL, "--allow-write"], "'--allow-write' is not allowed: --join, and --url without NAME, take no"),
    (["--join", "fetch", "--allow-write"], "'--allow-write' is not allowed: --join, and --url without"),
    ([], "the following arguments are required: NAME"),
    (["--join"], "--join needs the names of servers, or --config FILE with their settings"),
    (["--join", "nothing"], "there is no server 'nothing' in the catalog"),
    (["--join", "fetch", "--url", URL], "--join is for servers that the client starts, --url for one that is"),
    (["--join", "--config", "nowhere.yaml"], "nowhere.yaml: No such file or directory"),
    (["fetch", "--config", "bundle.yaml"], "--connect needs --url without NAME, and --config needs --join"),
]


def test_unusable_arguments_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [([*words, "--client", "claude-desktop"], why) for words, why in REFUSED]
    assert not not_refused(capsys, config.main, rows)


@pytest.mark.slow
def test_an_installed_url_entry_reaches_the_server(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with everything(MCP_TOKEN="hush") as url:
        words = ("--url", url, "--client", "claude-desktop")
        assert install([*words, "--token-file", "token"]) == 0
        assert capsys.readouterr().out.splitlines()[-2].startswith("works: ")
        assert install([*words, "--name", "other"]) == 1
        *_, fault, last = capsys.readouterr().out.splitlines()
    assert "; send a token with --token-file" in fault
    assert last == "the server does not work yet, but its entry was kept; run install again, or uninstall"
    uninstall(["other", "--client", "claude-desktop"])
    uninstall([name_of(url), "--client", "claude-desktop"])
    assert not (home / ".config").exists()


# Joined servers


def test_joined_servers_are_one_entry(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The directory is required: `config` may run in any directory."""
    words = ("--join", "filesystem", "sqlite", "--client", "claude-desktop")
    shown = refused(capsys, config.main, *words)
    assert shown == "filesystem needs directories: pass --env MCP_FILESYSTEM_ROOTS=DIR, or --config FILE"
    assert refused(capsys, config.main, *words, "--env", "MCP_FILESYSTEM_ROOTS=") == shown
    entry = starting("run", "--join", "filesystem", "sqlite")
    found = printed(capsys, *words, "--env", "MCP_FILESYSTEM_ROOTS=/srv")
    assert found == {"bundle": {**entry, "env": {"MCP_FILESYSTEM_ROOTS": "/srv"}}}


def test_joined_servers_take_their_settings_from_a_file(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "bundle.yaml").write_text("servers: {sqlite: {demo: true}, fetch: {}}")
    words = ("--join", "--config", "bundle.yaml", "--client", "claude-desktop")
    file = str(home / "bundle.yaml")
    assert printed(capsys, *words) == {"bundle": starting("run", "--join", "--config", file)}
    assert printed(capsys, *words, "fetch")["bundle"]["args"][-3:] == ["fetch", "--config", file]
    shown = refused(capsys, config.main, *words, "prompts")
    assert shown == "bundle.yaml has no server 'prompts'"


# In the file of a client


def test_uninstall_removes_a_url_entry_by_its_name(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An entry of that name for another server stays."""
    path = home / ".config" / "Claude" / "claude_desktop_config.json"
    path.parent.mkdir(parents=True)
    entry = printed(capsys, "--url", URL, "--client", "claude-desktop")
    path.write_text(json.dumps({"mcpServers": entry}))
    uninstall(["mcp-example-org", "--client", "claude-desktop"])
    assert json.loads(path.read_text()) == {"mcpServers": {}}
    path.write_text('{"mcpServers": {"remote": {"command": "npx"}}}')
    capsys.readouterr()
    shown = refused(capsys, uninstall, "remote", "--client", "claude-desktop")
    assert shown == f"{path}: the server 'remote' was not added by install: remove it by hand"
