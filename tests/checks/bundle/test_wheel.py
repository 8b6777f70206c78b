"""The wheel: what it holds, and what it is like to install it from the file, with uv and uvx.

With uv it is installed beside a distribution with packages called `shared` and `servers`, as a checkout calls ours,
and run in a directory and with a PYTHONPATH that have both as well: whatever imports one of them ends.
"""

import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from hatch_build import NAME, move
from servers.bundle.commands.export import main as export
from servers.catalog import Entry, load_catalog
from shared.client.connect import connect_http
from tests.checks.bundle.programs import fresh, run
from tests.checks.interop.pages import served
from tests.checks.readme_commands import CHECKOUT, Newcomer, Step, steps_of
from tests.postgres_server import any_database
from tests.raw import BARE
from tests.redis_server import RedisServer
from tests.wire import Wire

pytestmark = pytest.mark.timeout(1_500)

ROOT = Path(__file__).resolve().parents[3]
ENTRIES = load_catalog().servers
WITH_EXTRA = [entry for entry in ENTRIES if entry.extra is not None]

TOPS = {"shared", "servers", NAME}
HOSTILE = {
    f"{name}/{file}.py": "raise SystemExit(__name__)"
    for name in ("shared", "servers")
    for file in ("__init__", "__main__")
}

LEFT_OUT = {
    *("python3 -m venv .venv", ".venv/bin/pip install --editable '.[all]'", "mkdir -p ~/Documents"),
    ".venv/bin/mcp-server-bundle doctor",
}
"""The commands of README.md that install the checkout, one whose result is there, and one with a test of its own."""
WITH_PROCESSES = [
    ".venv/bin/mcp-bundle-prompts --transport http --workers 2 --store {store}",
    f".venv/bin/python -m {NAME}.servers.filesystem --transport http --workers 2 --store {{store}} ~/Documents",
    ".venv/bin/mcp-server-bundle call sqlite read_query query='SELECT 6 * 7' -- --demo",
]
"""Further commands, which start processes of their own."""

each_with_extra = pytest.mark.parametrize("entry", WITH_EXTRA, ids=lambda entry: entry.name)


def arguments(entry: Entry, folder: Path) -> list[str]:
    """What the server can't start, or be tried, without."""
    if entry.name == "postgres":
        return [any_database()]
    needed = {"filesystem": [str(folder)], "sqlite": ["--demo"], "fetch": ["--allow-private", "127.0.0.1:*"]}
    return needed.get(entry.name, [])


@pytest.fixture(scope="module")
def installed(wheel: Path, installers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a fresh environment, in which uv has installed everything."""
    folder = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder)
    uv = [str(installers / "uv"), "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")]
    run([*uv, f"{wheel}[all]", str(make_hostile(folder))], folder)
    return folder / "bin"


def make_hostile(folder: Path) -> Path:
    """A wheel with packages of the names that ours have in a checkout."""
    info = "hostile-1.0.dist-info"
    files = {
        **HOSTILE,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: ours\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / "hostile-1.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return folder / "hostile-1.0-py3-none-any.whl"


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A directory with packages of those names, and an environment whose PYTHONPATH has them."""
    folder = tmp_path / "hostile"
    for name, text in HOSTILE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder, {**BARE, "PYTHONPATH": str(folder)}


def site(installed: Path) -> Path:
    return next(installed.parent.glob("lib/python*/site-packages"))


def test_the_wheel_has_one_package_with_its_data_and_the_catalog(wheel: Path, tmp_path: Path) -> None:
    move(ROOT, tmp_path / NAME)
    wanted = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as held:
        assert {name for name in held.namelist() if ".dist-info/" not in name} == wanted.keys()
        assert [name for name, path in wanted.items() if held.read(name) != path.read_bytes()] == []


def test_the_source_distribution_builds_the_same_wheel(built: Path, wheel: Path, installers: Path) -> None:
    (source,) = built.glob("*.tar.gz")
    run([str(installers / "uv"), "build", "--wheel", "--out-dir", str(built / "again"), str(source)], built)
    assert (built / "again" / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_source_distribution_has_no_installed_packages(built: Path) -> None:
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = archive.getnames()
    assert any(name.endswith("/tests/checks/bundle/test_wheel.py") for name in names)
    assert not [name for name in names if "node_modules" in name or "/.venv" in name]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_program_installed_by_uv_prints_its_version(
    entry: Entry, installed: Path, hostile: tuple[Path, dict[str, str]]
) -> None:
    said = f"{entry.name} {entry.version}\n"
    assert run([str(installed / str(entry.script)), "--version"], *hostile) == said
    assert run([str(installed / "python"), "-m", f"{NAME}.{entry.module}", "--version"], *hostile) == said


def test_doctor_finds_no_fault_in_an_installation_by_uv(
    installed: Path, hostile: tuple[Path, dict[str, str]]
) -> None:
    doctor = [str(installed / "python"), "-m", f"{NAME}.servers", "doctor"]
    assert run(doctor, *hostile).endswith("\n0 faults, 0 warnings\n")


def test_the_readme_works_with_an_installation_by_uv(
    installed: Path, hostile: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder, env = hostile
    home = tmp_path / "home"
    (home / "Documents").mkdir(parents=True)
    folder.rename(home / CHECKOUT)
    (home / CHECKOUT / ".venv").symlink_to(installed.parent)
    python = Path(sys.base_prefix) / "bin"
    newcomer = Newcomer(home, {**env, **fresh(home, python), "PYTHONPATH": str(home / CHECKOUT)})
    steps = [step for step in steps_of(ROOT / "README.md", "README.md") if step.text not in LEFT_OUT]
    # As docs/authors.md says.
    newcomer.follow([step._replace(text=step.text.replace("from shared", f"from {NAME}")) for step in steps])
    store = RedisServer(tmp_path)
    store.start()
    try:
        newcomer.follow([Step("processes", 0, command.replace("{store}", store.url)) for command in WITH_PROCESSES])
    finally:
        store.stop()


def test_uninstalling_one_distribution_leaves_the_other_intact(
    installed: Path, wheel: Path, installers: Path, tmp_path: Path
) -> None:
    def files() -> set[Path]:
        return {path for top in TOPS for path in (site(installed) / top).rglob("*.py")}

    uv = [str(installers / "uv"), "pip", "--quiet"]
    at = ["--python", str(installed / "python")]
    both = files()
    run([*uv, "uninstall", *at, "hostile"], tmp_path)
    ours = files()
    assert ours == {path for path in both if path.is_relative_to(site(installed) / NAME)}
    run([*uv, "install", *at, str(make_hostile(tmp_path))], tmp_path)
    run([*uv, "uninstall", *at, "mcp-server-bundle"], tmp_path)
    assert files() == both - ours
    run([*uv, "install", *at, "--no-deps", str(wheel)], tmp_path)
    assert files() == both


async def test_a_server_installed_by_uv_answers(installed: Path, hostile: tuple[Path, dict[str, str]]) -> None:
    folder, env = hostile
    async with Wire([str(installed / "mcp-bundle-prompts")], cwd=folder, env=env) as server:
        assert (await server.initialize())["serverInfo"]["name"] == "prompts"
        answer = await server.request("prompts/list")
    assert len(answer["result"]["prompts"]) == len(load_catalog().entry("prompts").prompts)


def test_exports_of_the_wheel_equal_those_of_the_checkout(installed: Path, tmp_path: Path) -> None:
    assert export(["--output", str(tmp_path / "checkout")]) == 0
    run([str(installed / "mcp-server-bundle"), "export", "--output", "wheel"], tmp_path)
    ours = [path for path in (tmp_path / "checkout").rglob("*") if path.is_file()]
    assert len(ours) > 3 * len(ENTRIES)
    for path in ours:
        other = tmp_path / "wheel" / path.relative_to(tmp_path / "checkout")
        if path.suffix not in (".mcpb", ".whl"):
            assert other.read_bytes() == path.read_bytes()
            continue
        with zipfile.ZipFile(path) as bundle, zipfile.ZipFile(other) as bundle_of_wheel:
            moved = {moved_name(name) for name in bundle.namelist()}
            assert set(bundle_of_wheel.namelist()) == moved
            if path.suffix == ".mcpb":
                assert bundle_of_wheel.read("manifest.json") == bundle.read("manifest.json")


def moved_name(name: str) -> str:
    """What a wheel calls a file of the checkout."""
    return re.sub(r"^shared/", f"{NAME}/", re.sub(r"^servers/", f"{NAME}/servers/", name))


# What loads the libraries of the extra, and a part of its answer.
WORK: dict[str, tuple[str, dict[str, Any], str]] = {
    "filesystem": ("search_content", {"path": ".", "pattern": "w.rds"}, "some words"),
    "sqlite": ("read_query", {"query": "SELECT replace('4?', '?', '2') AS answer"}, "42"),  # in a process of its own
    "postgres": ("read_query", {"query": "SELECT 6 * 7 AS answer"}, "42"),
    "fetch": ("fetch", {"url": "{site}/story"}, "A story"),
    "prompts": ("render_prompt", {"name": "commit-message", "arguments": {"diff": "+ a line"}}, "+ a line"),
}


@each_with_extra
async def test_a_server_with_its_extra_works_under_uvx(
    entry: Entry, wheel: Path, installers: Path, hostile: tuple[Path, dict[str, str]]
) -> None:
    folder, env = hostile
    (folder / "notes.txt").write_text("some words")
    command = [str(installers / "uvx"), "--from", f"{wheel}[{entry.extra}]", str(entry.script)]
    run([*command, "--version"], folder, env)  # installs it
    tool, given, wanted = WORK[entry.name]
    with served() as site:
        given = json.loads(json.dumps(given).replace("{site}", site))
        async with Wire([*command, *arguments(entry, folder)], cwd=folder, env=env) as server:
            await server.initialize()
            answer = await server.request("tools/call", {"name": tool, "arguments": given}, timeout=60)
    assert wanted in answer["result"]["content"][0]["text"]
    assert not answer["result"].get("isError")


@pytest.fixture
def registered(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """What the registry says of the SQLite server, by transport."""
    assert export(["sqlite", "--output", str(tmp_path)]) == 0
    packages = json.loads((tmp_path / "sqlite" / "server.json").read_text())["packages"]
    return {package["transport"]["type"]: package for package in packages}


def started(package: dict[str, Any], installers: Path) -> list[str]:
    """The command that a client of the registry makes of a package."""
    runtime = [part for one in package["runtimeArguments"] for part in (one["name"], one["value"])]
    words = [one["value"] for one in package["packageArguments"] if "value" in one]
    called = f"{package['identifier']}@{package['version']}"
    return [str(installers / package["runtimeHint"]), *runtime, called, *words]


def settings(package: dict[str, Any], built: Path) -> dict[str, str]:
    """The variables it starts it with; the user has asked for the demo."""
    fixed = {one["name"]: one["value"] for one in package["environmentVariables"] if "value" in one}
    # Only what is published is found without being told where to look.
    return {**BARE, **fixed, "UV_FIND_LINKS": str(built), "MCP_SQLITE_DEMO": "true"}


async def test_a_client_of_the_registry_starts_a_server(
    registered: dict[str, dict[str, Any]], built: Path, installers: Path, tmp_path: Path
) -> None:
    package = registered["stdio"]
    command, env = started(package, installers), settings(package, built)
    run([*command, "--version"], tmp_path, env)  # installs it
    async with Wire(command, cwd=tmp_path, env=env) as server:
        assert (await server.initialize())["serverInfo"]["name"] == "sqlite"


async def test_a_client_of_the_registry_reaches_a_server_over_http(
    registered: dict[str, dict[str, Any]], built: Path, installers: Path, tmp_path: Path
) -> None:
    package = registered["streamable-http"]
    command, env = started(package, installers), settings(package, built) | {"MCP_PORT": "0", "MCP_TOKEN": "secret"}
    run([*command, "--version"], tmp_path, env)  # installs it
    async with await anyio.open_process(command, cwd=tmp_path, env=env, stdout=None) as process:
        try:
            assert process.stderr is not None
            with anyio.fail_after(30):
                said = (await BufferedByteReceiveStream(process.stderr).receive_until(b"\n", 1_000)).decode()
            url = said.removeprefix("listening on ")
            port = url.rpartition(":")[2].partition("/")[0]
            assert url == package["transport"]["url"].replace("{MCP_PORT}", port)
            async with connect_http(url, token="secret") as client:
                assert client.server.info["name"] == "sqlite"
        finally:
            process.terminate()
