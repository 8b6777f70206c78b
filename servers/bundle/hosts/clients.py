"""The clients: where the configuration of each stands, and how it writes down a server.

All of it is data and pure functions of a `Machine`, so that a test on one system sees the paths of all three. Each
place and each shape is that of the client's own documentation, which `source` names.
"""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from servers.common.machine import Machine

Scope = Literal["user", "project"]
SCOPES: tuple[Scope, ...] = ("user", "project")


class HttpShape(NamedTuple):
    """How an entry names a server that is reached over HTTP."""

    url: str = "url"
    headers: str = "headers"
    fixed: Mapping[str, str] = {}
    """What else stands in such an entry."""
    variable: str | None = None
    """How a header names a variable of the client's environment, called `{}` here; None where none can be named."""
    bearer: str | None = None
    """The key that takes the name of the variable with the bearer token, where there is one for that."""


class Client(NamedTuple):
    """One client; what most have in common is the default."""

    name: str
    """What `--client` takes."""
    title: str
    user: Callable[[Machine], PurePath]
    """The file for all of the user's projects."""
    renewal: str
    """What makes it see a changed file."""
    source: str
    """The documentation of it."""
    http: HttpShape | None
    """None where its file takes no server that is reached over HTTP."""
    project: str | None = None
    """The file for one project, from the project's directory, with `/`; None where there is no such file."""
    key: str = "mcpServers"
    """The key of the file under which its servers stand, each under its name."""
    format: Literal["json", "jsonc", "toml"] = "json"
    """`jsonc` is JSON with comments and trailing commas, as the client itself reads it."""
    stdio: Mapping[str, str] = {}
    """What stands in the entry of a server that is started, besides `command`, `args` and `env`."""

    def file(self, machine: Machine, scope: Scope, project: Path) -> Path:
        """The file of one scope. Raises ValueError where the client has no such scope."""
        if scope == "user":
            return Path(self.user(machine))
        if self.project is None:
            raise ValueError(f"{self.title} has no configuration for a project: leave out --scope project")
        return project / self.project


def _claude_desktop(machine: Machine) -> PurePath:
    """From the Store it has a folder of its own in the place of that of all programs."""
    package = next((name for name in machine.packages if name.startswith("Claude_")), None)
    settings = machine.settings()
    if package is not None:
        settings = machine.local() / "Packages" / package / "LocalCache" / "Roaming"
    return settings / "Claude" / "claude_desktop_config.json"


def _zed(machine: Machine) -> PurePath:
    if machine.system == "windows":
        return machine.settings() / "Zed" / "settings.json"
    # On macOS too it is not `Application Support`; see `config_dir` in its crates/paths/src/paths.rs.
    linux = machine.system == "linux"
    base = (machine.variable("FLATPAK_XDG_CONFIG_HOME") or machine.variable("XDG_CONFIG_HOME")) if linux else None
    return (base or machine.home / ".config") / "zed" / "settings.json"


def _cline(machine: Machine) -> PurePath:
    data = machine.variable("CLINE_DATA_DIR") or machine.home / ".cline" / "data"
    return machine.variable("CLINE_MCP_SETTINGS_PATH") or data / "settings" / "cline_mcp_settings.json"


CLIENTS = (
    Client(
        name="claude-desktop",
        title="Claude Desktop",
        user=_claude_desktop,
        # It reaches others as connectors, which are set up in its window.
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
        renewal="switch it on in Cursor's settings, under MCP",
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
        user=_zed,
        project=".zed/settings.json",
        key="context_servers",
        format="jsonc",
        # `source`, which older versions wanted, is taken out by newer ones (crates/migrator, m_2025_11_25).
        stdio={},
        http=HttpShape(),
        renewal="Zed starts it at once",
        source="https://zed.dev/docs/ai/mcp",
    ),
    Client(
        name="cline",
        title="Cline",
        user=_cline,
        http=HttpShape(fixed={"type": "streamableHttp"}),
        renewal="Cline starts it at once",
        source="https://docs.cline.bot/mcp/mcp-overview",
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        user=lambda machine: (machine.variable("GEMINI_CLI_HOME") or machine.home) / ".gemini" / "settings.json",
        project=".gemini/settings.json",
        format="jsonc",
        http=HttpShape(url="httpUrl", variable="${{{}}}"),
        # In others it starts no server, nor says why unless it is asked.
        renewal="start Gemini CLI again, in a folder that it trusts",
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
        renewal="start Codex again",
        source="https://github.com/openai/codex/blob/main/docs/config.md",
    ),
)


def client_named(name: str) -> Client:
    """The client called `name`. Raises ValueError, naming those there are."""
    for client in CLIENTS:
        if client.name == name:
            return client
    raise ValueError(f"there is no client {name!r}; there are: {', '.join(client.name for client in CLIENTS)}")
