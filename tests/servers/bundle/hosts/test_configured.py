"""Entries of each client: written and read."""

import re
from pathlib import Path

import pytest

from servers.bundle.hosts.clients import CLIENTS, get_client
from servers.bundle.hosts.configured import ConfiguredServer, build_entry, parse_entry, read_entries

STARTED = ConfiguredServer("a", command="/bin/a", args=("--x", "1"), env={"K": "V"})
REACHED = ConfiguredServer("a", url="https://example.com/mcp", headers={"X-Key": "V"})


def test_a_written_entry_is_read_back() -> None:
    for client in CLIENTS:
        assert parse_entry(client, "a", build_entry(client, STARTED)) == STARTED
        if client.http:
            assert parse_entry(client, "a", build_entry(client, REACHED)) == REACHED
    codex, server = get_client("codex"), REACHED._replace(token_variable="MCP_TOKEN")
    assert parse_entry(codex, "a", build_entry(codex, server)) == server
    with pytest.raises(ValueError, match="the file of Claude Desktop can list only servers that it starts"):
        build_entry(get_client("claude-desktop"), REACHED)


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "settings"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_entries_are_read_from_json_with_comments_and_toml(tmp_path: Path) -> None:
    path = write(tmp_path, '\ufeff{// mine\r\n"other": [1,], "servers": {"a": {"command": "/bin/a",},},}')
    assert read_entries(get_client("vscode"), path) == {"a": {"command": "/bin/a"}}
    path = write(tmp_path, 'model = "x"\n[mcp_servers.a]\ncommand = "/bin/a"\n[mcp_servers.a.env]\nK = "V"\n')
    assert read_entries(get_client("codex"), path) == {"a": {"command": "/bin/a", "env": {"K": "V"}}}
    for name in ("claude-desktop", "vscode", "codex"):
        found = [read_entries(get_client(name), write(tmp_path, text)) for text in ("", "\n")]
        assert [*found, read_entries(get_client(name), tmp_path / "missing")] == [{}, {}, {}]


UNREADABLE: list[tuple[str, str | bytes, str]] = [
    ("claude-desktop", '{\n  "mcpServers": {} 1\n}', "is not JSON: line 2, column 20"),
    ("claude-code", "{} // mine", "is not JSON: line 1, column 4"),
    ("vscode", '{\n  "servers": {"a" 1}\n}', "is not JSON with comments: line 2, column 19: Expecting"),
    ("vscode", "{servers: {}}", "is not JSON with comments: line 1, column 2"),
    (
        "cursor",
        r'{"mcpServers": {"a": {"command": "C:\Users\a.exe"}}}',
        r"is not JSON with comments: line 1, column 37: Invalid \escape; write each backslash twice",
    ),
    ("vscode", '{"servers": {}, "servers": {}}', "the key 'servers' occurs twice"),
    ("cursor", '{"mcpServers": {"a": {}, "a": {}}}', "the key 'a' occurs twice"),
    ("cursor", '{"mcpServers": []}', "'mcpServers' is not an object"),
    ("cursor", "[]", "is not a JSON object"),
    ("codex", "[mcp_servers", "is not TOML: "),
    ("codex", "mcp_servers = 1", "'mcp_servers' is not a table"),
    ("vscode", '{"ü": 1}'.encode("utf-16"), "is not UTF-8"),
    ("claude-code", "[" * 100_000, "is nested too deeply"),
    ("vscode", '{"servers": {"a": ' + "[" * 50_000 + "]" * 50_000 + "}}", "is nested too deeply"),
]


def test_a_file_unreadable_for_the_client_is_refused(tmp_path: Path) -> None:
    for name, text, reason in UNREADABLE:
        path = write(tmp_path, text)
        with pytest.raises(ValueError, match=re.escape(f"{path}: {reason}")):
            read_entries(get_client(name), path)


UNUSABLE: list[tuple[object, str]] = [
    (1, "'a' is not an object"),
    ({}, "'a' has no 'command' or 'url'"),
    ({"command": 1}, "'a': 'command' is empty, or not a string"),
    ({"command": ""}, "'a': 'command' is empty, or not a string"),
    ({"command": "x", "args": "y"}, "'a': 'args' is not a list of strings"),
    ({"command": "x", "env": {"K": 1}}, "'a': 'env' is not an object of strings"),
    ({"url": "x", "headers": ["y"]}, "'a': 'headers' is not an object of strings"),
]


def test_an_entry_unusable_for_the_client_is_refused() -> None:
    for entry, reason in UNUSABLE:
        with pytest.raises(ValueError, match=reason):
            parse_entry(get_client("vscode"), "a", entry)
    assert parse_entry(get_client("vscode"), "a", {"url": "x", "headers": []}) == ConfiguredServer("a", url="x")


def test_disabled_and_extension_entries_start_nothing() -> None:
    """Covers disabled servers, and settings of Zed extensions."""
    found = parse_entry(get_client("cline"), "a", {"command": "x", "disabled": True})
    assert found is not None
    assert not found.enabled
    assert parse_entry(get_client("zed"), "a", {"settings": {}}) is None
