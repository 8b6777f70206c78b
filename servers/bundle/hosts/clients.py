"""The clients: the location of each one's configuration, and the format of its entries.

All of it is data and pure functions of a `Machine`, so that a test on one system checks the paths of all three. Each
path and format is from the client's own documentation, which is in `source`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from servers.common.machine import Machine

Scope = Literal["user", "project"]
SCOPES: tuple[Scope, ...] = ("user", "project")


class HttpShape(NamedTuple):
    """The format of an entry for a server that is reached over HTTP."""

    url: str = "url"
    headers: str = "headers"
    fixed: Mapping[str, str] = {}
    """The other fixed fields of the entry."""
    variable: str | None = None
    """The syntax for a variable of the client's environment in a header, with `{}` for its name; None if not
    supported."""
    bearer: str | None = None
    """The key for the name of the variable with the bearer token, if there is one."""


class Client(NamedTuple):
    """One client; the defaults apply to most clients."""

    name: str
    """The value of `--client`."""
    title: str
    user: Callable[[Machine], PurePath]
    """The file for all of the user's projects."""
    renewal: str
    """The action that makes it read a changed file."""
    source: str
    """Its documentation."""
    http: HttpShape | None
    """None if its file can't contain a server that is reached over HTTP."""
    project: str | None = None
    """The file for one project, relative to the project's directory, with `/`; None if there is no such file."""
    key: str = "mcpServers"
    """The key of the file that contains its servers, each under its name."""
    format: Literal["json", "jsonc", "toml"] = "json"
    """`jsonc` is JSON with comments and trailing commas, as the client itself reads it."""
    stdio: Mapping[str, str] = {}
    """Fixed fields in the entry of a server that is started, in addition to `command`, `args` and `env`."""

    def file(self, machine: Machine, scope: Scope, project: Path) -> Path:
        """Return the file of one scope. Raises ValueError if the client has no such scope."""
        if scope == "user":
            return Path(self.user(machine))
        if self.project is None:
            raise ValueError(f"{self.title} has no project configuration: omit --scope project")
        return project / self.project


def _claude_desktop_file(machine: Machine) -> PurePath:
    """Return the user's file; the version from the Store has its own folder instead of the common one."""
    package = next((name for name in machine.packages if name.startswith("Claude_")), None)
    settings = machine.settings()
    if package is not None:
        settings = machine.local() / "Packages" / package / "LocalCache" / "Roaming"
    return settings / "Claude" / "claude_desktop_config.json"


def _zed_file(machine: Machine) -> PurePath:
    if machine.system == "windows":
        return machine.settings() / "Zed" / "settings.json"
    # On macOS too it is not `Application Support`; see `config_dir` in its crates/paths/src/paths.rs.
    linux = machine.system == "linux"
    base = (machine.variable("FLATPAK_XDG_CONFIG_HOME") or machine.variable("XDG_CONFIG_HOME")) if linux else None
    return (base or machine.home / ".config") / "zed" / "settings.json"


CLIENTS = (
    Client(
        name="claude-desktop",
        title="Claude Desktop",
        user=_claude_desktop_file,
        # It reaches remote servers as connectors, which are configured in its window.
        http=None,
        renewal="quit Claude Desktop and start it again",
        source="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
    ),
    Client(
        name="claude-code",
        title="Claude Code",
        user=lambda machine: (machine.variable("CLAUDE_CONFIG_DIR") or machine.home) / ".claude.json",
        project=".mcp.json",
        stdio={"type": "stdio"},
        http=HttpShape(fixed={"type": "http"}, variable="${{{}}}"),
        renewal="start a new session of Claude Code",
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
        renewal="run 'MCP: List Servers' in VS Code and start it there",
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
        renewal="enable it in Cursor's settings, under MCP",
        source="https://cursor.com/docs/mcp",
    ),
    Client(
        name="windsurf",
        title="Windsurf",
        user=lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
        http=HttpShape(url="serverUrl", variable="${{env:{}}}"),
        renewal="press Refresh in Windsurf, under MCP servers",
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
        renewal="Zed starts the server at once",
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
        renewal="Cline starts the server at once",
        source="https://docs.cline.bot/mcp/mcp-overview",
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        user=lambda machine: (machine.variable("GEMINI_CLI_HOME") or machine.home) / ".gemini" / "settings.json",
        project=".gemini/settings.json",
        format="jsonc",
        http=HttpShape(url="httpUrl", variable="${{{}}}"),
        # In other folders it starts no servers, and does not report why unless it is asked.
        renewal="restart Gemini CLI, in a folder that it trusts",
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
        renewal="restart Codex",
        source="https://github.com/openai/codex/blob/main/docs/config.md",
    ),
)


def get_client(name: str) -> Client:
    """Return the client called `name`. Raises ValueError that lists the existing names."""
    for client in CLIENTS:
        if client.name == name:
            return client
    raise ValueError(f"there is no client {name!r}; available: {', '.join(client.name for client in CLIENTS)}")
