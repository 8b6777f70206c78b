"""What the READMEs show is true: their code runs, their tables agree with the code."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from servers.bundle.program import COMMANDS
from servers.catalog import load_catalog
from servers.fetch.server import app as fetch
from servers.filesystem.server import app as filesystem
from servers.gateway.serve.choice import choose
from servers.gateway.serve.configuration import read_configuration
from servers.postgres.server import app as postgres
from servers.prompts.server import app as prompts
from servers.sqlite.server import app as sqlite
from shared.program.run import Options
from shared.server.server import Server
from shared.testing import connected
from tests.raw import BARE
from tests.wire import Wire

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
SERVER = "## Write your own server"
HEADS = ("option", "tool", "server", "command")
SERVERS = {"fetch": fetch, "filesystem": filesystem, "postgres": postgres, "prompts": prompts, "sqlite": sqlite}
each_server = pytest.mark.parametrize(("name", "app"), SERVERS.items(), ids=SERVERS)


def readme(server: str) -> str:
    return (ROOT / f"servers/{server}/README.md").read_text()


def rows(text: str, heading: str) -> Iterator[list[str]]:
    """The cells of the first table under a heading."""
    section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    for line in section.splitlines():
        cells = [cell.strip().strip("`").replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        if line.startswith("|") and cells[0] not in HEADS and not cells[0].startswith("---"):
            yield cells


def described(model: type[BaseModel], prefix: str) -> list[list[str]]:
    """The rows that a table of the model's options must have."""
    found = []
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        flag = "" if extra.get("secret") else str(extra.get("positional", "--" + name.replace("_", "-")))
        default = field.get_default(call_default_factory=True, validated_data={})
        shown = "" if default in (None, False, []) else str(default)
        found.append([flag, f"{prefix}_{name}".upper(), shown, field.description or ""])
    return found


def test_the_options_of_every_server_are_all_there() -> None:
    assert list(rows(README, "Options of every server")) == described(Options, "MCP")


@each_server
def test_the_options_of_a_server_are_all_there(name: str, app: Server[Any]) -> None:
    shown = described(app.settings_model, f"MCP_{name}")
    assert list(rows(readme(name), "Options")) == shown


@each_server
def test_the_tools_of_a_server_are_all_there(name: str, app: Server[Any]) -> None:
    shown = [[tool.name, " ".join(tool.listed["description"].split())] for tool in app.tools.all()]
    assert [[tool, what] for tool, _, what in rows(readme(name), "Tools")] == shown


def test_the_servers_are_those_of_the_catalog() -> None:
    table = README.split("|---|---|\n", 1)[1].split("\n\n", 1)[0]
    listed = [(entry.name, entry.summary) for entry in load_catalog().servers]
    assert re.findall(r"\| \[(\S+)\]\(\S+\) \| (.*) \|", table) == listed


def test_the_commands_are_all_there() -> None:
    assert [tuple(row) for row in rows(README, "The commands")] == list(COMMANDS.items())


def test_the_configuration_of_several_servers_is_one(tmp_path: Path) -> None:
    (tmp_path / "Documents").mkdir()
    (tmp_path / "bundle.yaml").write_text(code("yaml"))
    chosen = choose([], load_catalog(), read_configuration(tmp_path / "bundle.yaml"))
    assert [one.name for one in chosen] == ["filesystem", "sqlite", "fetch"]


def code(language: str, heading: str = "") -> str:
    found = re.search(rf"```{language}\n(.*?)```", README[README.index(heading) :], re.DOTALL)
    assert found is not None
    return found.group(1)


async def test_the_server_of_the_readme_rolls_a_die() -> None:
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(code("python", SERVER), "README.md", "exec"), names)
    async with connected(names["app"]) as end:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta, "name": "roll"}}
        await end.send_bytes(json.dumps(call).encode())
        with anyio.fail_after(30):
            answer = json.loads(await end.receive_bytes())
    assert answer["result"]["structuredContent"] == 4


def test_the_server_of_the_readme_has_at_most_twenty_lines_of_code() -> None:
    assert sum(bool(line.strip()) for line in code("python", SERVER).splitlines()) <= 20


@pytest.mark.slow
def test_the_client_of_the_readme_does_what_is_printed_there(tmp_path: Path) -> None:
    section = "\n## Write your own client\n"
    (tmp_path / "dice.py").write_text(code("python", SERVER))
    (tmp_path / "play.py").write_text(code("python", section))
    played = subprocess.run(
        [sys.executable, "play.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    _, _, printed = code("text", section).partition("play.py\n")
    assert played.stdout == printed
    assert (tmp_path / "dice.py").exists()


def test_every_link_within_the_checkout_leads_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("servers/*/README.md")):
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page.name}: {link}"


def demo(*options: str) -> str:
    command = [sys.executable, "-m", "servers", "demo", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=True).stdout


@pytest.mark.slow
async def test_the_snippet_of_the_demo_starts_all_servers_from_any_directory(tmp_path: Path) -> None:
    """Executed exactly as printed, from a directory with a folder called `servers` in it."""
    (tmp_path / "servers").mkdir()
    (tmp_path / "servers" / "__init__.py").write_text("raise RuntimeError('shadowed')")
    told = demo()
    # `make demo` has these and the five lines of tests/checks/interop/test_demo.py, and is read as a whole.
    assert len(told.splitlines()) <= 48
    assert "files, a database, pages and prompts through one program" in told
    assert 'who spent most: ["' in told
    config = json.loads(told[told.index("\n{") :])["mcpServers"]["bundle"]
    async with Wire([config["command"], *config["args"]], env={**BARE, **config["env"]}, cwd=tmp_path) as server:
        result = await server.initialize()
    assert result["serverInfo"]["name"] == "mcp-server-bundle"


@pytest.mark.slow
def test_what_the_demo_does_is_what_the_pages_of_the_servers_show() -> None:
    told = alike(demo("--verbose"))
    # What it does in PostgreSQL depends on the database that the operator has.
    names = SERVERS.keys() - {"postgres"}
    shown = [block for name in names for block in re.findall(r"```text\n(.*?)```", readme(name), re.DOTALL)]
    assert len(shown) == 3
    for block in shown:
        for step in re.split(r"^(?=->)", alike(block), flags=re.MULTILINE):
            assert step in told


def alike(text: str) -> str:
    """`text` without what is another one each time: marks, ports, times, names of folders."""
    changing = r"(?<=data-|page-)\w{8}|(?<=127\.0\.0\.1:)\d+|\d{4}-\d\d-\d\d [\d:]{8}|[\d.]+(?= ms)"
    # The version of a text with a port in it.
    changing += r"|(?<=version )\w{8}"
    return re.sub(changing, "_", text)


def test_what_make_and_pytest_are_said_to_do_they_can() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("*/*/README.md")]
    prose = "".join(page.read_text() for page in pages)
    targets = set(re.findall(r"^(\w+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make (\w+)", prose)) <= targets
    assert [path for path in re.findall(r"`pytest (tests/[\w/]+)", prose) if not (ROOT / path).exists()] == []


@pytest.mark.slow
def test_setup_says_what_it_does_and_what_comes_next(tmp_path: Path) -> None:
    for path in ("Makefile", "pyproject.toml", "tests/constraints.txt"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    pip = tmp_path / ".venv" / "bin" / "pip"  # a stand-in: what it would install takes a minute
    pip.parent.mkdir(parents=True)
    pip.write_text("#!/bin/sh\n")
    pip.chmod(0o755)
    made = ["make", "--no-print-directory", "setup", f"PYTHON={sys.executable}"]
    done = subprocess.run(made, cwd=tmp_path, capture_output=True, text=True, check=True)
    first, *others = done.stdout.splitlines()
    assert first.startswith("Installing")
    assert [line.split()[:2] for line in others[1:3]] == [["make", "demo"], ["make", "test"]]
