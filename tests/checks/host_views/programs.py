"""The hosts as users have them, with a scripted model in place of the real one."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests import npm
from tests.checks.host_views.dialects import SERVER, Dialect, GenerateContent, Messages, Responses
from tests.checks.host_views.model import Script, serving

HERE = Path(__file__).resolve().parent
PATIENCE = 180.0
"""Seconds of a conversation."""


class Started(NamedTuple):
    """How a host is started."""

    words: list[str]
    env: dict[str, str]


class Host(NamedTuple):
    """A host: the folder that pins it, its script there, and how it finds model and server."""

    name: str
    folder: str
    script: str
    dialect: Dialect
    started: Callable[[Path, str, list[str]], Started]
    """Given its home directory, the URL of the model and the command of the server; writes its configuration."""
    client: str
    """What it calls itself."""

    def play(self, home: Path, server: list[str], script: Script, patience: float = PATIENCE) -> None:
        """Let its model follow the script. Raises npm.Unavailable if the host can't be installed."""
        node, folder = npm.find_node(), HERE / self.folder
        npm.require(node, folder, self.name)
        with serving(self.dialect, script) as model:
            words, env = self.started(home, model.url, server)
            env |= {"HOME": str(home), "PATH": f"{node.parent}:/usr/bin:/bin", "TERM": "xterm", "LANG": "C.UTF-8"}
            done = subprocess.run(
                [str(node), str(folder / "node_modules" / self.script), *words],
                cwd=home, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience,
            )  # fmt: skip
        assert model.is_finished, f"{self.name} ended: {(done.stdout + done.stderr)[-2_000:]}"


def _claude_code(home: Path, url: str, server: list[str]) -> Started:
    config = home / "mcp.json"
    entry = {"type": "stdio", "command": server[0], "args": server[1:]}
    config.write_text(json.dumps({"mcpServers": {SERVER: entry}}))
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # As long as tools are few they are all shown to the model.
        "ENABLE_TOOL_SEARCH": "false",
        # It may run as root then, where it asks nobody.
        "IS_SANDBOX": "1",
        # The conversation begins when the server is ready.
        "MCP_CONNECTION_NONBLOCKING": "0",
        "MCP_TIMEOUT": "120000",
    }
    words = ["-p", "begin", "--dangerously-skip-permissions", "--strict-mcp-config", "--mcp-config", str(config)]
    return Started(words, env)


def _codex(home: Path, url: str, server: list[str]) -> Started:
    (home / ".codex").mkdir()
    provider = {"name": "scripted", "base_url": f"{url}/v1", "env_key": "NO_KEY", "wire_api": "responses"}
    lines = [
        'model = "gpt-5"',
        'model_provider = "scripted"',
        "[model_providers.scripted]",
        *(f"{key} = {json.dumps(value)}" for key, value in provider.items()),
        f"[mcp_servers.{SERVER}]",
        f"command = {json.dumps(server[0])}",
        f"args = {json.dumps(server[1:])}",
        # The conversation begins when the server is ready.
        "required = true",
        "startup_timeout_sec = 120",
    ]
    (home / ".codex" / "config.toml").write_text("\n".join(lines))
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "begin"]
    return Started(words, {"NO_KEY": "none"})


def _gemini(home: Path, url: str, server: list[str]) -> Started:
    (home / ".gemini").mkdir()
    entry = {"command": server[0], "args": server[1:], "trust": True}
    settings = {"mcpServers": {SERVER: entry}, "security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    env = {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "none",
        "GEMINI_CLI_NO_RELAUNCH": "1",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return Started(["-m", "gemini-2.5-pro", "-y", "-p", "begin"], env)


_CLAUDE, _GEMINI = "@anthropic-ai/claude-code/cli-wrapper.cjs", "@google/gemini-cli/bundle/gemini.js"
CLAUDE_CODE = Host("Claude Code", "claude", _CLAUDE, Messages(), _claude_code, "claude-code")
CODEX = Host("Codex CLI", "codex", "@openai/codex/bin/codex.js", Responses(), _codex, "codex-mcp-client")
GEMINI = Host("Gemini CLI", "gemini", _GEMINI, GenerateContent(), _gemini, "gemini-cli-mcp-client")
HOSTS = (CLAUDE_CODE, CODEX, GEMINI)
