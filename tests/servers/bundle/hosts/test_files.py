"""How the files of clients are written: whole or not at all, beside other processes, and by one that is killed."""

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from servers.bundle.hosts.files import KEPT_BACKUPS, back_up, hold_lock, write_atomically
from tests import disk

ROOT = Path(__file__).resolve().parents[4]
Start = Callable[..., "subprocess.Popen[str]"]
STATE = Path(".local/state/mcp-server-bundle")
AT_ONCE = """
import multiprocessing, sys
from servers.bundle.commands.install import main as install
from servers.bundle.commands.install import uninstall
context = multiprocessing.get_context("fork")

def run(barrier, command, words):
    barrier.wait()
    sys.exit(command(words))

def at_once(command):
    barrier = context.Barrier(6)
    names = [(client, client + number) for client in ("claude-code", "cursor") for number in "123"]
    words = [["fetch", "--client", client, "--name", name] for client, name in names]
    processes = [context.Process(target=run, args=(barrier, command, one)) for one in words]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return sum(process.exitcode for process in processes)

print("ready", flush=True)
while line := sys.stdin.readline():
    print("failed:", at_once({"install": install, "uninstall": uninstall}[line.strip()]), flush=True)
"""
MEDDLED = """
import sys
from pathlib import Path
from servers.bundle.commands.install import main as install

def meddle(event, args):
    if event == "open" and "/..claude.json." in str(args[0]):
        Path(".claude.json").write_bytes(b'{"numStartups": 2}')

print("ready", flush=True)
sys.stdin.readline()
sys.addaudithook(meddle)
sys.exit(install(["fetch", "--client", "claude-code"]))
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a process that has loaded everything, and waits for a line."""
    with ExitStack() as stack:

        def started(program: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "-c", program],
                cwd=tmp_path,
                env={"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            return process

        yield started


def ask(process: subprocess.Popen[str], command: str) -> None:
    """Has a process make six changes at the same moment, in the files of two clients."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{command}\n")
    process.stdin.flush()
    shown = iter(process.stdout.readline, "")
    assert next(line for line in shown if line.startswith("failed:")) == "failed: 0\n"


def files(home: Path) -> list[str]:
    """All files but the backups."""
    found = [path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()]
    return sorted(path for path in found if "/backups/" not in path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no process there is a copy of another")
def test_no_change_is_lost_of_those_made_at_the_same_moment(tmp_path: Path, start: Start) -> None:
    process = start(AT_ONCE)
    ask(process, "install")
    for client, path in (("claude-code", ".claude.json"), ("cursor", ".cursor/mcp.json")):
        entries = json.loads((tmp_path / path).read_text())["mcpServers"]
        assert sorted(entries) == [f"{client}{number}" for number in "123"]
    ask(process, "uninstall")
    # The receipts were kept too, so that nothing of the files is left.
    assert files(tmp_path) == [f"{STATE.as_posix()}/installed.json"]
    process.communicate()


def test_who_holds_it_for_long_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No option says how long it is waited for.
    monkeypatch.setattr("servers.bundle.hosts.files._WAIT_SECONDS", 0)
    lock = tmp_path / "state" / "lock"
    with hold_lock(lock), pytest.raises(ValueError, match=f"another command holds {lock}"), hold_lock(lock):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process there is never killed by a signal")
def test_a_change_that_is_killed_at_any_stage_leaves_all_in_order(tmp_path: Path) -> None:
    """The file is whole, who was killed holds no lock, and nothing is left beside it."""
    words = [sys.executable, str(Path(__file__).parent / "killed.py"), str(tmp_path / "home")]
    (tmp_path / "home").mkdir()
    done = subprocess.run(words, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "cursor, from None to second: more than ten stages",
        "cursor, from first to second: more than ten stages",
        "codex, from first to None: more than ten stages",
    ], done.stderr


@pytest.mark.slow
def test_what_a_client_writes_while_its_file_is_prepared_is_not_lost(tmp_path: Path, start: Start) -> None:
    (tmp_path / ".claude.json").write_bytes(b"{}")
    shown, _ = (process := start(MEDDLED)).communicate("\n")
    assert (process.returncode, "has just been changed by another program" in shown) == (2, True)
    assert (tmp_path / ".claude.json").read_bytes() == b'{"numStartups": 2}'
    assert files(tmp_path) == [".claude.json", f"{STATE.as_posix()}/installed.json"]


def test_of_the_backups_of_a_file_the_newest_are_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    other = back_up(kept, tmp_path / "other" / "[mcp].json", b"other")
    made = [back_up(kept, tmp_path / "[mcp].json", str(number).encode()) for number in range(KEPT_BACKUPS + 3)]
    assert sorted(kept.iterdir()) == [other, *made[3:]]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_of_a_file_stays(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch(mode)
    path.chmod(mode)
    write_atomically(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
def test_only_its_owner_reads_a_file_that_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.touch(0o644)
    made = disk.made(monkeypatch)
    write_atomically(path, b"new")
    assert made == [0o600]


@pytest.mark.skipif(sys.platform == "win32", reason="directories are not synced there")
def test_a_file_reaches_the_disk_and_then_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = disk.synced(monkeypatch)
    write_atomically(tmp_path / "made" / "x", b"new")
    assert synced == [3, ["x"]]


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root writes for others")
def test_the_owner_of_a_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    os.chown(path, 65534, 65533)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid, path.read_bytes()) == (65534, 65533, b"new")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of a file")
def test_a_failed_write_leaves_the_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("{}")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, limits[1]))
    try:
        with pytest.raises(ValueError, match="File too large"):
            write_atomically(path, b"new and longer")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("{}", [path])
