"""The servers on a system that lacks what only POSIX has, as far as Linux can be one (`elsewhere/sitecustomize.py`).

Nothing here has run on Windows: paths are those of this system, and so are its ways to start and end processes.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres_server import new_database
from tests.servers.peers import Peer
from tests.wire import Wire

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests/checks/elsewhere'}{os.pathsep}{ROOT}"}
ALL = """
import importlib, pkgutil, servers, shared
for package in (shared, servers):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__") and not module.name.startswith("servers.bundle"):
            importlib.import_module(module.name)
"""
PROMPT = "---\ndescription: A plain text\n---\nText\n"
CSV = "a,b\n1,2\n"
CALLS = {
    "filesystem": [
        ("write_file", {"path": "new/../file", "content": "one"}),
        ("edit_file", {"path": "file", "edits": [{"oldText": "one", "newText": "two"}]}),
        ("copy_file", {"source": "file", "destination": "copy"}),
        ("move_file", {"source": "copy", "destination": "moved"}),
        ("read_text_file", {"path": "moved"}),
        ("search_content", {"path": ".", "pattern": "two"}),
        ("delete_file", {"path": "moved"}),
        ("list_directory", {"path": "."}),
    ],
    "prompts": [
        ("save_prompt", {"name": "plain", "text": PROMPT}),
        ("render_prompt", {"name": "plain"}),
        ("delete_prompt", {"name": "plain"}),
    ],
    "sqlite": [
        ("import_csv", {"table": "rows", "file": "rows.csv"}),
        ("read_query", {"query": "SELECT a + b AS sum FROM rows"}),
        ("backup", {}),
    ],
    "postgres": [
        ("import_csv", {"table": "rows", "file": "rows.csv"}),
        ("read_query", {"query": "SELECT a + b AS sum FROM rows"}),
    ],
}


@pytest.mark.parametrize("server", CALLS)
async def test_a_server_works_and_warns_of_weaker_protection(server: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(CSV)
    (tmp_path / "link").symlink_to("/etc")
    files = ["--files", tmp_path, "--create", tmp_path / "data.db"] if server == "sqlite" else [tmp_path]
    if server == "postgres":
        files = ["--files", tmp_path, new_database()]
    command = [sys.executable, "-m", f"servers.{server}", "--allow-write", *map(str, files)]
    async with Wire(command, env=ENVIRONMENT) as wire:
        await wire.initialize("2025-11-25")
        peer = Peer(wire, "2025-11-25")
        for tool, arguments in CALLS[server]:
            result = await peer.call(tool, **arguments)
            assert "isError" not in result, result
        if server == "filesystem":
            assert "outside_roots" in await peer.error("list_directory", path="link")
    assert "checked before and after they are opened" in wire.stderr


def test_every_module_can_be_imported() -> None:
    subprocess.run([sys.executable, "-c", ALL], cwd=ROOT, env=ENVIRONMENT, check=True, timeout=120)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "files",
    [
        ["filesystem/test_server.py", "filesystem/features/test_edit.py", "filesystem/features/test_resources.py"],
        ["prompts/features/test_prompts.py", "prompts/features/test_tools.py"],
        ["sqlite/write/test_importing.py", "sqlite/write/test_execution.py"],
    ],
    ids=["filesystem", "prompts", "sqlite"],
)
def test_the_main_tests_of_a_server_pass(files: list[str]) -> None:
    options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *options, *(f"tests/servers/{file}" for file in files)]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=590)
    assert done.returncode == 0, done.stdout[-5_000:]
