"""The file of each client on each system."""

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from servers.bundle.hosts.clients import CLIENTS, get_client
from servers.common.machine import Machine, state_folder

LINUX = Machine("linux", PurePosixPath("/home/ann"), {})
MACOS = Machine("macos", PurePosixPath("/Users/ann"), {})
WINDOWS = Machine("windows", PureWindowsPath(r"C:\Users\ann"), {"APPDATA": r"D:\Roaming"})

SUPPORT = "/Users/ann/Library/Application Support"


def at_home(path: str) -> tuple[str, str, str]:
    """Returns the same path below the home directory of each system."""
    return f"/home/ann/{path}", f"/Users/ann/{path}", "C:\\Users\\ann\\" + path.replace("/", "\\")


PLACES = {
    "claude-desktop": (
        "/home/ann/.config/Claude/claude_desktop_config.json",
        f"{SUPPORT}/Claude/claude_desktop_config.json",
        r"D:\Roaming\Claude\claude_desktop_config.json",
    ),
    "claude-code": at_home(".claude.json"),
    "vscode": (
        "/home/ann/.config/Code/User/mcp.json",
        f"{SUPPORT}/Code/User/mcp.json",
        r"D:\Roaming\Code\User\mcp.json",
    ),
    "cursor": at_home(".cursor/mcp.json"),
    "windsurf": at_home(".codeium/windsurf/mcp_config.json"),
    "zed": (
        "/home/ann/.config/zed/settings.json",
        "/Users/ann/.config/zed/settings.json",
        r"D:\Roaming\Zed\settings.json",
    ),
    "cline": at_home(".cline/data/settings/cline_mcp_settings.json"),
    "gemini": at_home(".gemini/settings.json"),
    "codex": at_home(".codex/config.toml"),
}


def test_each_client_has_its_user_file_on_each_system() -> None:
    machines = (LINUX, MACOS, WINDOWS)
    assert {one.name: tuple(str(one.user(machine)) for machine in machines) for one in CLIENTS} == PLACES
    assert all(client.source.startswith("https://") for client in CLIENTS)
    # The folder of the receipts as well.
    assert str(state_folder(LINUX)) == "/home/ann/.local/state/mcp-server-bundle"
    assert str(state_folder(MACOS)) == f"{SUPPORT}/mcp-server-bundle"
    assert str(state_folder(WINDOWS)) == r"C:\Users\ann\AppData\Local\mcp-server-bundle"


def test_claude_desktop_from_the_store_has_its_own_folder() -> None:
    local = WINDOWS._replace(packages=("Claude.Other", "Claude_pzs8sxrjxfjjc", "Other_1"))
    found = get_client("claude-desktop").user(local)
    folder = r"C:\Users\ann\AppData\Local\Packages\Claude_pzs8sxrjxfjjc\LocalCache\Roaming"
    assert str(found) == rf"{folder}\Claude\claude_desktop_config.json"


MOVED = [
    ("claude-desktop", "XDG_CONFIG_HOME", "/other/Claude/claude_desktop_config.json"),
    ("claude-code", "CLAUDE_CONFIG_DIR", "/other/.claude.json"),
    ("vscode", "XDG_CONFIG_HOME", "/other/Code/User/mcp.json"),
    ("zed", "XDG_CONFIG_HOME", "/other/zed/settings.json"),
    ("zed", "FLATPAK_XDG_CONFIG_HOME", "/other/zed/settings.json"),
    ("cline", "CLINE_DATA_DIR", "/other/settings/cline_mcp_settings.json"),
    ("cline", "CLINE_MCP_SETTINGS_PATH", "/other"),
    ("gemini", "GEMINI_CLI_HOME", "/other/.gemini/settings.json"),
    ("codex", "CODEX_HOME", "/other/config.toml"),
]


def test_environment_variables_move_the_file_of_a_client() -> None:
    for name, variable, place in MOVED:
        machine = LINUX._replace(environment={variable: "/other"})
        assert get_client(name).user(machine) == PurePosixPath(place)
    # A relative directory in a variable is ignored.
    machine = LINUX._replace(environment={"XDG_CONFIG_HOME": "other"})
    assert get_client("vscode").user(machine) == PurePosixPath("/home/ann/.config/Code/User/mcp.json")


def test_unknown_clients_and_scopes_are_refused() -> None:
    with pytest.raises(ValueError, match="Claude Desktop has no project configuration"):
        get_client("claude-desktop").file(LINUX, "project", Path("/work"))
    with pytest.raises(ValueError, match="no client 'emacs'; available: claude-desktop, claude-code, vscode"):
        get_client("emacs")
