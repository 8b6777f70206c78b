"""What the documents show is true: their code runs, their tables agree with the code."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from servers.bundle.hosts.clients import CLIENTS, Client
from servers.bundle.program import COMMANDS
from servers.catalog import Argument, Entry, Permissions, load_catalog
from servers.common.machine import Machine
from servers.fetch.server import app as fetch
from servers.filesystem.server import app as filesystem
from servers.gateway.serve.choice import choose
from servers.gateway.serve.configuration import read_configuration
from servers.postgres.server import app as postgres
from servers.prompts.server import app as prompts
from servers.sqlite.server import app as sqlite
from shared.program.run import Options
from shared.server.dispatch.hosts import HOSTS
from shared.server.server import Server
from shared.testing import connect_memory, connected
from tests.documents import PAGES
from tests.raw import BARE

ROOT = Path(__file__).resolve().parents[1]
SERVERS = {"fetch": fetch, "filesystem": filesystem, "postgres": postgres, "prompts": prompts, "sqlite": sqlite}
each_server = pytest.mark.parametrize(("name", "app"), SERVERS.items(), ids=SERVERS)


def page(path: str) -> str:
    return (ROOT / path).read_text()


def readme(server: str) -> str:
    return page(f"servers/{server}/README.md")


def rows(text: str, heading: str) -> Iterator[list[str]]:
    """Yield the cells of each row in the tables under a heading, without their heads."""
    section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    for line, following in pairwise([*section.splitlines(), ""]):
        if line.startswith("|") and not line.startswith("|---") and not following.startswith("|---"):
            cells = re.split(r"(?<!\\)\|", line.strip("|"))
            yield [cell.strip().strip("`").replace("\\|", "|") for cell in cells]


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
    assert list(rows(page("docs/options.md"), "Options")) == described(Options, "MCP")


@each_server
def test_the_options_of_a_server_are_all_there(name: str, app: Server[Any]) -> None:
    shown = described(app.settings_model, f"MCP_{name}")
    assert list(rows(readme(name), "Options")) == shown


@each_server
def test_the_tools_of_a_server_are_all_there(name: str, app: Server[Any]) -> None:
    shown = [[tool.name, " ".join(tool.entry["description"].split())] for tool in app.tools.all()]
    assert [[tool, what] for tool, _, what in rows(readme(name), "Tools")] == shown


def test_the_servers_are_those_of_the_catalog() -> None:
    listed = [(entry.name, entry.summary) for entry in load_catalog().servers]
    assert re.findall(r"^\| \[(\S+)\]\(servers/\S+\) \| (.*?) \|", page("README.md"), re.MULTILINE) == listed


def test_the_commands_are_all_there() -> None:
    assert [tuple(row) for row in rows(page("docs/command-line.md"), "Commands")] == list(COMMANDS.items())


@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_the_files_of_a_client_are_those_that_install_writes(client: Client) -> None:
    machines = {
        "Linux": Machine("linux", PurePosixPath("~"), {}),
        "macOS": Machine("macos", PurePosixPath("~"), {}),
        "Windows": Machine("windows", PureWindowsPath("%USERPROFILE%"), {}),
    }
    files: dict[str, PurePath | str] = {name: client.user(machine) for name, machine in machines.items()}
    files["a project"] = client.project or "none"
    shown = rows(page(f"docs/clients/{client.name}.md"), "Files")
    assert [tuple(row) for row in shown] == [(name, str(file)) for name, file in files.items()]


def test_every_client_has_a_page() -> None:
    listed = re.findall(r"^\| `(\S+)` \| \[(.*)\]\((\S+)\) \|$", page("docs/clients/README.md"), re.MULTILINE)
    assert listed == [(client.name, client.title, f"{client.name}.md") for client in CLIENTS]


def test_the_sizes_of_results_are_those_of_the_hosts() -> None:
    shown = {
        int(size.replace(",", ""))
        for _, size in rows(page("docs/clients/README.md"), "How much of a result the model sees")
    }
    assert shown == {host.text_bytes for host in HOSTS}


@pytest.mark.parametrize(
    ("heading", "model"), {"Server": Entry, "Arguments": Argument, "Permissions": Permissions}.items()
)
def test_the_fields_of_a_catalog_are_all_there(heading: str, model: type[BaseModel]) -> None:
    shown = [(name, needed == "yes") for name, needed, _ in rows(page("docs/catalog.md"), heading)]
    assert shown == [(name, field.is_required()) for name, field in model.model_fields.items()]


def test_the_extras_are_all_there() -> None:
    project = tomllib.loads(page("pyproject.toml"))["project"]
    shown = {name for names, _ in rows(page("docs/install.md"), "Extras") for name in re.findall(r"\w+", names)}
    assert shown == project["optional-dependencies"].keys() - {"dev", "docs"}


def test_the_configuration_of_several_servers_is_one(tmp_path: Path) -> None:
    (tmp_path / "Documents").mkdir()
    (tmp_path / "bundle.yaml").write_text(code("docs/http.md", "yaml"))
    chosen = choose([], load_catalog(), read_configuration(tmp_path / "bundle.yaml"))
    assert [one.name for one in chosen] == ["filesystem", "sqlite", "fetch"]


def code(path: str, language: str) -> str:
    """Return the first block of code in that language."""
    block = re.search(rf"```{language}\n(.*?)```", page(path), re.DOTALL)
    assert block is not None
    return block.group(1)


@pytest.mark.parametrize(("path", "results"), {"README.md": {1, 2, 3, 4, 5, 6}, "docs/authors.md": {4}}.items())
async def test_the_server_that_is_shown_rolls_a_die(path: str, results: set[int]) -> None:
    names: dict[str, Any] = {"__name__": "shown"}
    exec(compile(code(path, "python"), path, "exec"), names)
    async with connected(names["app"]) as end:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta, "name": "roll"}}
        await end.send_bytes(json.dumps(call).encode())
        with anyio.fail_after(30):
            answer = json.loads(await end.receive_bytes())
    assert answer["result"]["structuredContent"] in results


def test_the_readme_is_short_and_so_is_its_server() -> None:
    assert len(page("README.md").encode()) <= 10_000
    assert len(code("README.md", "python").splitlines()) <= 20


@pytest.mark.slow
def test_the_client_that_is_shown_does_what_is_printed_there(tmp_path: Path) -> None:
    path = "docs/client-library.md"
    (tmp_path / "dice.py").write_text(code("docs/authors.md", "python"))
    (tmp_path / "play.py").write_text(code(path, "python"))
    played = subprocess.run(
        [sys.executable, "play.py"], cwd=tmp_path, capture_output=True, text=True, timeout=110, check=True
    )
    _, _, printed = code(path, "text").partition("play.py\n")
    assert played.stdout == printed
    assert (tmp_path / "dice.py").exists()


@pytest.mark.slow
def test_the_test_that_is_shown_passes(tmp_path: Path) -> None:
    path = "docs/authors.md"
    (tmp_path / "dice.py").write_text(code(path, "python"))
    (tmp_path / "test_dice.py").write_text(code(path, "python\n# ~/test_dice.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_dice.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert "1 passed" in ran.stdout, ran.stdout


async def test_the_extension_that_is_shown_times_calls(caplog: pytest.LogCaptureFixture) -> None:
    names: dict[str, Any] = {"__name__": "shown"}
    exec(compile(code("docs/authors.md", "python\n# ~/timed.py"), "timed.py", "exec"), names)

    def roll() -> int:
        """Roll a die."""
        return 4

    names["app"].tool(roll)
    with caplog.at_level("INFO"), anyio.fail_after(30):
        async with connect_memory(names["app"]) as client:
            await client.list_tools()
            assert (await client.call_tool("roll")).text == "4"
    assert [line.partition(" took")[0] for line in caplog.messages if " took" in line] == ["roll"]


async def test_the_sampling_that_is_shown_asks_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "shown"}
    exec(compile(code("docs/authors.md", "python\n# ~/titles.py"), "titles.py", "exec"), names)
    with anyio.fail_after(30):
        await names["main"]()
    assert capsys.readouterr().out == "All about dice\n"


def test_every_link_within_the_checkout_leads_somewhere() -> None:
    """`tests/docs` follows them on the site, with their anchors."""
    for path in PAGES:
        prose = re.sub(r"```.*?```", "", page(path), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
            assert link.startswith("https://") or (ROOT / path).parent.joinpath(link).exists(), f"{path}: {link}"


def demo(*options: str) -> str:
    command = [sys.executable, "-m", "servers", "demo", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=True).stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_commands_that_the_demo_shows_install_servers_from_any_directory(tmp_path: Path) -> None:
    """Executed exactly as printed, from a directory with a folder called `servers` in it."""
    (tmp_path / "servers").mkdir()
    (tmp_path / "servers" / "__init__.py").write_text("raise RuntimeError('shadowed')")
    told = demo()
    # `make demo` has these and the five lines of tests/checks/interop/test_demo.py, and is read as a whole.
    assert len(told.splitlines()) <= 55
    assert "the same work through one program that joins them" in told
    assert '| ["Chien-Shiung Wu",' in told
    (tmp_path / "Documents").mkdir()
    home = {**BARE, "HOME": str(tmp_path)}
    for command in told.splitlines()[-2:]:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=home, capture_output=True, text=True, timeout=120, check=True
        )
        assert "\nworks: " in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
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
    prose = "".join(map(page, PAGES))
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
