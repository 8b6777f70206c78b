"""The clients: the location of each one's configuration, and the format of its entries.

Everything here is data, or a pure function of a `Machine`, so that tests on one system can check the paths on all of
them. Each path and format is taken from the client's own documentation, whose URL is `source`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from servers.common.machine import Machine

Scope = Literal["user", "project"]
SCOPES: tuple[Scope, ...] = ("user", "project")


class HttpShape(NamedTuple):
    """The format of an entry for a server at a URL. `url` and `headers` are the names of these fields."""

    url: str = "url"
    headers: str = "headers"
    fixed: Mapping[str, str] = {}
    """Further fields, which are the same in each entry."""
    variable: str | None = None
    """The syntax of a placeholder, in a header, for a variable of the client's environment, with `{}` for its name;
    None if the client has none."""
    bearer: str | None = None
    """The field for the name of the variable that contains the bearer token; None if there is no such field."""


class Client(NamedTuple):
    """One client. The defaults of the fields apply to most clients."""

    name: str
    """The value of `--client`."""
    title: str
    user: Callable[[Machine], PurePath]
    """Returns the user's file, which applies to all projects."""
    reload_action: str
    """What the user must do so that the client reads the changed file."""
    source: str
    """The URL of the documentation."""
    http: HttpShape | None
    """None if the file can't contain a server at a URL."""
    project: str | None = None
    """The path of the file for one project, relative to the project's directory, with `/`; None if there is none."""
    key: str = "mcpServers"
    """The key of the file that contains its servers, each under its name."""
    format: Literal["json", "jsonc", "toml"] = "json"
    """The format of the file as the client reads it. `jsonc` is JSON with comments and trailing commas."""
    stdio: Mapping[str, str] = {}
    """Fields that each entry of a server to start has, in addition to `command`, `args` and `env`."""

    def file(self, machine: Machine, scope: Scope, project: Path) -> Path:
        """Return the file of one scope. Raises ValueError if the client has no such scope."""
        if scope == "user":
            return Path(self.user(machine))
        if self.project is None:
            raise ValueError(f"{self.title} has no project configuration: omit --scope project")
        return project / self.project


def _claude_desktop_file(machine: Machine) -> PurePath:
    """Return the user's file. The version from the Microsoft Store has a folder of its own."""
    package = next((name for name in machine.packages if name.startswith("Claude_")), None)
    settings = machine.settings()
    if package is not None:
        settings = machine.local() / "Packages" / package / "LocalCache" / "Roaming"
    return settings / "Claude" / "claude_desktop_config.json"


def _zed_file(machine: Machine) -> PurePath:
    if machine.system == "windows":
        return machine.settings() / "Zed" / "settings.json"
    # On macOS, it is `~/.config` too, not `Application Support`; see `config_dir` in Zed's crates/paths/src/paths.rs.
    linux = machine.system == "linux"
    base = (machine.variable("FLATPAK_XDG_CONFIG_HOME") or machine.variable("XDG_CONFIG_HOME")) if linux else None
    return (base or machine.home / ".config") / "zed" / "settings.json"


CLIENTS = (
    Client(
        name="claude-desktop",
        title="Claude Desktop",
        user=_claude_desktop_file,
        # Remote servers are "connectors", which are configured in its window.
        http=None,
        reload_action="quit Claude Desktop and start it again",
        source="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
    ),
    Client(
        name="claude-code",
        title="Claude Code",
        user=lambda machine: (machine.variable("CLAUDE_CONFIG_DIR") or machine.home) / ".claude.json",
        project=".mcp.json",
        stdio={"type": "stdio"},
        http=HttpShape(fixed={"type": "http"}, variable="${{{}}}"),
        reload_action="start a new session of Claude Code",
        source="https://code.claude.com/docs/en/mcp",
    ),
    Client(
        name="vscode",
        title="VS Code",
        user=lambda machine: machine.settings() / "Code" / "User" / "mcp.json",
        project=".vscode/mcp.json",
        key="servers",
        format="jsonc",
        stdio={"type": "stdio"},
        http=HttpShape(fixed={"type": "http"}, variable="${{env:{}}}"),
        reload_action="run 'MCP: List Servers' in VS Code and start it there",
        source="https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
    ),
    Client(
        name="cursor",
        title="Cursor",
        user=lambda machine: machine.home / ".cursor" / "mcp.json",
        project=".cursor/mcp.json",
        # The examples of its documentation have comments.
        format="jsonc",
        stdio={"type": "stdio"},
        http=HttpShape(variable="${{env:{}}}"),
        reload_action="enable it in Cursor's settings, under MCP",
        source="https://cursor.com/docs/mcp",
    ),
    Client(
        name="windsurf",
        title="Windsurf",
        user=lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
        http=HttpShape(url="serverUrl", variable="${{env:{}}}"),
        reload_action="press Refresh in Windsurf, under MCP servers",
        source="https://docs.devin.ai/desktop/cascade/mcp",
    ),
    Client(
        name="zed",
        title="Zed",
        user=_zed_file,
        project=".zed/settings.json",
        key="context_servers",
        format="jsonc",
        # `source`, which older versions require, is removed by newer ones (crates/migrator, m_2025_11_25).
        stdio={},
        http=HttpShape(),
        reload_action="Zed starts the server at once",
        source="https://zed.dev/docs/ai/mcp",
    ),
    Client(
        name="cline",
        title="Cline",
        user=lambda machine: (
            machine.variable("CLINE_MCP_SETTINGS_PATH")
            or (machine.variable("CLINE_DATA_DIR") or machine.home / ".cline" / "data")
            / "settings"
            / "cline_mcp_settings.json"
        ),
        http=HttpShape(fixed={"type": "streamableHttp"}),
        reload_action="Cline starts the server at once",
        source="https://docs.cline.bot/mcp/mcp-overview",
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        user=lambda machine: (machine.variable("GEMINI_CLI_HOME") or machine.home) / ".gemini" / "settings.json",
        project=".gemini/settings.json",
        format="jsonc",
        http=HttpShape(url="httpUrl", variable="${{{}}}"),
        # In a folder that it does not trust, it starts no servers, and does not say so.
        reload_action="restart Gemini CLI, in a folder that it trusts",
        source="https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
    ),
    Client(
        name="codex",
        title="Codex CLI",
        user=lambda machine: (machine.variable("CODEX_HOME") or machine.home / ".codex") / "config.toml",
        project=".codex/config.toml",
        key="mcp_servers",
        format="toml",
        http=HttpShape(headers="http_headers", bearer="bearer_token_env_var"),
        reload_action="restart Codex",
        source="https://github.com/openai/codex/blob/main/docs/config.md",
    ),
)


def get_client(name: str) -> Client:
    """Return the client called `name`. Raises ValueError, which lists the existing names, if there is none."""
    for client in CLIENTS:
        if client.name == name:
            return client
    raise ValueError(f"there is no client {name!r}; available: {', '.join(client.name for client in CLIENTS)}")
