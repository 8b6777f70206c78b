"""Where each client keeps its servers on each system, and how it writes them down."""

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from servers.bundle.hosts.clients import CLIENTS, Client, Machine, client_named
from servers.bundle.hosts.configured import Configured, as_configured, as_entry, read_entries

LINUX = Machine("linux", PurePosixPath("/home/ann"), {})
MACOS = Machine("macos", PurePosixPath("/Users/ann"), {})
WINDOWS = Machine("windows", PureWindowsPath(r"C:\Users\ann"), {"APPDATA": r"D:\Roaming"})

SUPPORT = "/Users/ann/Library/Application Support"
PLACES = {
    "claude-desktop": (
        "/home/ann/.config/Claude/claude_desktop_config.json",
        f"{SUPPORT}/Claude/claude_desktop_config.json",
        r"D:\Roaming\Claude\claude_desktop_config.json",
    ),
    "claude-code": ("/home/ann/.claude.json", "/Users/ann/.claude.json", r"C:\Users\ann\.claude.json"),
    "vscode": (
        "/home/ann/.config/Code/User/mcp.json",
        f"{SUPPORT}/Code/User/mcp.json",
        r"D:\Roaming\Code\User\mcp.json",
    ),
    "cursor": ("/home/ann/.cursor/mcp.json", "/Users/ann/.cursor/mcp.json", r"C:\Users\ann\.cursor\mcp.json"),
    "windsurf": (
        "/home/ann/.codeium/windsurf/mcp_config.json",
        "/Users/ann/.codeium/windsurf/mcp_config.json",
        r"C:\Users\ann\.codeium\windsurf\mcp_config.json",
    ),
    "zed": (
        "/home/ann/.config/zed/settings.json",
        "/Users/ann/.config/zed/settings.json",
        r"D:\Roaming\Zed\settings.json",
    ),
    "cline": (
        "/home/ann/.cline/data/settings/cline_mcp_settings.json",
        "/Users/ann/.cline/data/settings/cline_mcp_settings.json",
        r"C:\Users\ann\.cline\data\settings\cline_mcp_settings.json",
    ),
    "gemini": (
        "/home/ann/.gemini/settings.json",
        "/Users/ann/.gemini/settings.json",
        r"C:\Users\ann\.gemini\settings.json",
    ),
    "codex": ("/home/ann/.codex/config.toml", "/Users/ann/.codex/config.toml", r"C:\Users\ann\.codex\config.toml"),
}

each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@each
def test_the_file_of_the_user_is_where_the_client_looks(client: Client) -> None:
    assert tuple(str(client.user(machine)) for machine in (LINUX, MACOS, WINDOWS)) == PLACES[client.name]


@pytest.mark.parametrize(
    ("name", "variable", "place"),
    [
        ("claude-desktop", "XDG_CONFIG_HOME", "/other/Claude/claude_desktop_config.json"),
        ("claude-code", "CLAUDE_CONFIG_DIR", "/other/.claude.json"),
        ("vscode", "XDG_CONFIG_HOME", "/other/Code/User/mcp.json"),
        ("zed", "XDG_CONFIG_HOME", "/other/zed/settings.json"),
        ("zed", "FLATPAK_XDG_CONFIG_HOME", "/other/zed/settings.json"),
        ("cline", "CLINE_DATA_DIR", "/other/settings/cline_mcp_settings.json"),
        ("cline", "CLINE_MCP_SETTINGS_PATH", "/other"),
        ("gemini", "GEMINI_CLI_HOME", "/other/.gemini/settings.json"),
        ("codex", "CODEX_HOME", "/other/config.toml"),
    ],
)
def test_variables_that_a_client_honours_move_its_file(name: str, variable: str, place: str) -> None:
    machine = LINUX._replace(environment={variable: "/other"})
    assert client_named(name).user(machine) == PurePosixPath(place)


def test_a_relative_directory_in_a_variable_moves_nothing() -> None:
    machine = LINUX._replace(environment={"XDG_CONFIG_HOME": "other"})
    assert client_named("vscode").user(machine) == PurePosixPath("/home/ann/.config/Code/User/mcp.json")


def test_a_client_without_projects_says_so() -> None:
    with pytest.raises(ValueError, match="Claude Desktop has no configuration for a project"):
        client_named("claude-desktop").file(LINUX, "project", Path("/work"))


def test_an_unknown_client_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no client 'emacs'; there are: claude-desktop, claude-code, vscode"):
        client_named("emacs")


STARTED = Configured("a", command="/bin/a", args=("--x", "1"), env={"K": "V"})
REACHED = Configured("a", url="https://example.com/mcp", headers={"X-Key": "V"})


@each
def test_what_is_written_for_a_started_server_is_read_back(client: Client) -> None:
    assert as_configured(client, "a", as_entry(client, STARTED)) == STARTED


@pytest.mark.parametrize("client", [one for one in CLIENTS if one.http], ids=lambda client: client.name)
def test_what_is_written_for_a_server_with_a_url_is_read_back(client: Client) -> None:
    assert as_configured(client, "a", as_entry(client, REACHED)) == REACHED


def test_the_variable_of_a_token_is_read_back_where_it_has_a_key() -> None:
    codex, server = client_named("codex"), REACHED._replace(token_variable="MCP_TOKEN")
    assert as_configured(codex, "a", as_entry(codex, server)) == server


def test_a_url_for_claude_desktop_is_refused() -> None:
    with pytest.raises(ValueError, match="the file of Claude Desktop takes no server with a URL"):
        as_entry(client_named("claude-desktop"), REACHED)


def write(folder: Path, text: str) -> Path:
    path = folder / "settings"
    path.write_bytes(text.encode())
    return path


def test_servers_are_read_from_json_with_comments_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path, '\ufeff{// mine\r\n"other": [1,], "servers": {"a": {"command": "/bin/a",},},}')
    assert read_entries(client_named("vscode"), path) == {"a": {"command": "/bin/a"}}


def test_servers_are_read_from_toml(tmp_path: Path) -> None:
    path = write(tmp_path, 'model = "x"\n[mcp_servers.a]\ncommand = "/bin/a"\n[mcp_servers.a.env]\nK = "V"\n')
    assert read_entries(client_named("codex"), path) == {"a": {"command": "/bin/a", "env": {"K": "V"}}}


@pytest.mark.parametrize("name", ["claude-desktop", "vscode", "codex"])
@pytest.mark.parametrize("text", [None, "", "\n"])
def test_a_file_without_anything_has_no_servers(name: str, text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "missing" if text is None else write(tmp_path, text)
    assert read_entries(client_named(name), path) == {}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("claude-desktop", '{\n  "mcpServers": {} 1\n}', "is not JSON: line 2, column 20"),
        ("claude-code", "{} // mine", "is not JSON: line 1, column 4"),
        ("vscode", '{\n  "servers": {"a" 1}\n}', "is not JSON with comments: line 2, column 19: Expecting"),
        ("vscode", "{servers: {}}", "is not JSON with comments: line 1, column 2"),
        ("vscode", '{"servers": {}, "servers": {}}', "the key 'servers' is there twice"),
        ("cursor", '{"mcpServers": {"a": {}, "a": {}}}', "the key 'a' is there twice"),
        ("cursor", '{"mcpServers": []}', "'mcpServers' is not an object"),
        ("cursor", "[]", "is not a JSON object"),
        ("codex", "[mcp_servers", "is not TOML: "),
        ("codex", "mcp_servers = 1", "'mcp_servers' is not a table"),
    ],
)
def test_a_file_the_client_could_not_read_is_refused(name: str, text: str, reason: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError) as refused:
        read_entries(client_named(name), path)
    assert str(refused.value).startswith(f"{path}: {reason}")


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_bytes('{"ü": 1}'.encode("utf-16"))
    with pytest.raises(ValueError, match="is not UTF-8"):
        read_entries(client_named("vscode"), path)


def test_a_file_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "[" * 100_000)
    with pytest.raises(ValueError, match="is nested too deeply"):
        read_entries(client_named("claude-code"), path)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (1, "'a' is not an object"),
        ({}, "'a' has no 'command' and no 'url'"),
        ({"command": 1}, "'a': 'command' is not a text"),
        ({"command": "x", "args": "y"}, "'a': 'args' is not a list of texts"),
        ({"command": "x", "env": {"K": 1}}, "'a': 'env' is not an object of texts"),
        ({"url": "x", "headers": []}, None),
        ({"url": "x", "headers": ["y"]}, "'a': 'headers' is not an object of texts"),
    ],
)
def test_an_entry_the_client_could_not_use_is_refused(entry: object, reason: str | None) -> None:
    if reason is None:
        assert as_configured(client_named("vscode"), "a", entry) == Configured("a", url="x")
        return
    with pytest.raises(ValueError) as refused:
        as_configured(client_named("vscode"), "a", entry)
    assert str(refused.value) == reason


def test_a_server_that_is_switched_off_is_read_as_that() -> None:
    found = as_configured(client_named("cline"), "a", {"command": "x", "disabled": True})
    assert found is not None
    assert not found.enabled


def test_what_an_extension_of_zed_brings_is_no_server_of_its_own() -> None:
    assert as_configured(client_named("zed"), "a", {"settings": {}}) is None


@each
def test_every_client_names_its_documentation(client: Client) -> None:
    assert client.source.startswith("https://")


def test_an_entry_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, '{"servers": {"a": ' + "[" * 50_000 + "]" * 50_000 + "}}")
    with pytest.raises(ValueError, match="is nested too deeply"):
        read_entries(client_named("vscode"), path)
