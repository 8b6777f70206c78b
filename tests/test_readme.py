"""The documents are correct: their code runs, and their tables agree with the code."""

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
from servers.gateway.serve.choice import choose_servers
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
    """Returns the rows that a table of the options of a model must have."""
    found = []
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        flag = "" if extra.get("secret") else str(extra.get("positional", "--" + name.replace("_", "-")))
        default = field.get_default(call_default_factory=True, validated_data={})
        shown = "" if default in (None, False, []) else str(default)
        found.append([flag, f"{prefix}_{name}".upper(), shown, field.description or ""])
    return found


def test_options_of_all_servers_are_documented() -> None:
    assert list(rows(page("docs/options.md"), "Options")) == described(Options, "MCP")


@each_server
def test_options_of_each_server_are_documented(name: str, app: Server[Any]) -> None:
    shown = described(app.settings_model, f"MCP_{name}")
    assert list(rows(readme(name), "Options")) == shown


@each_server
def test_tools_of_each_server_are_documented(name: str, app: Server[Any]) -> None:
    shown = [[tool.name, " ".join(tool.entry["description"].split())] for tool in app.tools.all()]
    assert [[tool, what] for tool, _, what in rows(readme(name), "Tools")] == shown


def test_the_readme_lists_the_servers_of_the_catalog() -> None:
    listed = [(entry.name, entry.summary) for entry in load_catalog().servers]
    assert re.findall(r"^\| \[(\S+)\]\(servers/\S+\) \| (.*?) \|", page("README.md"), re.MULTILINE) == listed


def test_all_commands_are_documented() -> None:
    assert [tuple(row) for row in rows(page("docs/command-line.md"), "Commands")] == list(COMMANDS.items())


@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_documented_client_files_are_those_of_install(client: Client) -> None:
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


def test_documented_result_sizes_are_those_of_the_hosts() -> None:
    shown = {
        int(size.replace(",", ""))
        for _, size in rows(page("docs/clients/README.md"), "How much of a result the model sees")
    }
    assert shown == {host.text_bytes for host in HOSTS}


@pytest.mark.parametrize(
    ("heading", "model"), {"Server": Entry, "Arguments": Argument, "Permissions": Permissions}.items()
)
def test_fields_of_a_catalog_are_documented(heading: str, model: type[BaseModel]) -> None:
    shown = [(name, needed == "yes") for name, needed, _ in rows(page("docs/catalog.md"), heading)]
    assert shown == [(name, field.is_required()) for name, field in model.model_fields.items()]


def test_all_extras_are_documented() -> None:
    project = tomllib.loads(page("pyproject.toml"))["project"]
    shown = {name for names, _ in rows(page("docs/install.md"), "Extras") for name in re.findall(r"\w+", names)}
    assert shown == project["optional-dependencies"].keys() - {"dev", "docs"}


def test_the_documented_configuration_is_valid(tmp_path: Path) -> None:
    (tmp_path / "Documents").mkdir()
    (tmp_path / "bundle.yaml").write_text(code("docs/http.md", "yaml"))
    chosen = choose_servers([], load_catalog(), read_configuration(tmp_path / "bundle.yaml"))
    assert [one.name for one in chosen] == ["filesystem", "sqlite", "fetch"]


def code(path: str, language: str) -> str:
    """Return the first block of code in that language."""
    block = re.search(rf"```{language}\n(.*?)```", page(path), re.DOTALL)
    assert block is not None
    return block.group(1)


@pytest.mark.parametrize(("path", "results"), {"README.md": {1, 2, 3, 4, 5, 6}, "docs/authors.md": {4}}.items())
async def test_the_documented_server_rolls_a_die(path: str, results: set[int]) -> None:
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


def test_the_readme_and_its_server_are_short() -> None:
    assert len(page("README.md").encode()) <= 10_000
    assert len(code("README.md", "python").splitlines()) <= 20


@pytest.mark.slow
def test_the_documented_client_prints_the_shown_output(tmp_path: Path) -> None:
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
def test_the_documented_test_passes(tmp_path: Path) -> None:
    path = "docs/authors.md"
    (tmp_path / "dice.py").write_text(code(path, "python"))
    (tmp_path / "test_dice.py").write_text(code(path, "python\n# ~/test_dice.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_dice.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert "1 passed" in ran.stdout, ran.stdout


async def test_the_documented_extension_times_calls(caplog: pytest.LogCaptureFixture) -> None:
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


async def test_the_documented_sampling_asks_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "shown"}
    exec(compile(code("docs/authors.md", "python\n# ~/titles.py"), "titles.py", "exec"), names)
    with anyio.fail_after(30):
        await names["main"]()
    assert capsys.readouterr().out == "All about dice\n"


def test_every_link_within_the_checkout_has_a_target() -> None:
    """`tests/docs` checks links and anchors of the site."""
    for path in PAGES:
        prose = re.sub(r"```.*?```", "", page(path), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
            assert link.startswith("https://") or (ROOT / path).parent.joinpath(link).exists(), f"{path}: {link}"


def demo(*options: str) -> str:
    command = [sys.executable, "-m", "servers", "demo", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=True).stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_commands_printed_by_the_demo_work_in_any_directory(tmp_path: Path) -> None:
    """The commands run exactly as printed, in a directory with a folder called `servers`."""
    (tmp_path / "servers").mkdir()
    (tmp_path / "servers" / "__init__.py").write_text("raise RuntimeError('shadowed')")
    output = demo()
    # `make demo` prints these and the five lines of tests/checks/interop/test_demo.py.
    assert len(output.splitlines()) <= 55
    assert "the same work through one program that joins them" in output
    assert '| ["Chien-Shiung Wu",' in output
    (tmp_path / "Documents").mkdir()
    home = {**BARE, "HOME": str(tmp_path)}
    for command in output.splitlines()[-2:]:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=home, capture_output=True, text=True, timeout=120, check=True
        )
        assert "\nworks: " in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_pages_of_the_servers_show_the_output_of_the_demo() -> None:
    output = alike(demo("--verbose"))
    # Its part in PostgreSQL depends on the database of the operator.
    names = SERVERS.keys() - {"postgres"}
    shown = [block for name in names for block in re.findall(r"```text\n(.*?)```", readme(name), re.DOTALL)]
    assert len(shown) == 3
    for block in shown:
        for step in re.split(r"^(?=->)", alike(block), flags=re.MULTILINE):
            assert step in output


def alike(text: str) -> str:
    """Returns `text` without its variable parts: marks, ports, times, names of folders."""
    changing = r"(?<=data-|page-)\w{8}|(?<=127\.0\.0\.1:)\d+|\d{4}-\d\d-\d\d [\d:]{8}|[\d.]+(?= ms)"
    # The version of a text that contains a port.
    changing += r"|(?<=version )\w{8}"
    return re.sub(changing, "_", text)


def test_documented_make_targets_and_test_paths_exist() -> None:
    prose = "".join(map(page, PAGES))
    targets = set(re.findall(r"^(\w+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make (\w+)", prose)) <= targets
    assert [path for path in re.findall(r"`pytest (tests/[\w/]+)", prose) if not (ROOT / path).exists()] == []


@pytest.mark.slow
def test_make_setup_prints_its_steps_and_the_next_command(tmp_path: Path) -> None:
    for path in ("Makefile", "pyproject.toml", "tests/constraints.txt"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    pip = tmp_path / ".venv" / "bin" / "pip"  # a substitute: the real installation takes a minute
    pip.parent.mkdir(parents=True)
    pip.write_text("#!/bin/sh\n")
    pip.chmod(0o755)
    made = ["make", "--no-print-directory", "setup", f"PYTHON={sys.executable}"]
    done = subprocess.run(made, cwd=tmp_path, capture_output=True, text=True, check=True)
    first, *others = done.stdout.splitlines()
    assert first.startswith("Installing")
    assert [line.split()[:2] for line in others[1:3]] == [["make", "demo"], ["make", "test"]]
