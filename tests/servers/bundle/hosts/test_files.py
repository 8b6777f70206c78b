"""Writes to the files of clients: atomic, concurrent, and interrupted by a kill."""

import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from servers.bundle.hosts.files import MAX_BACKUPS, back_up, hold_lock, write_atomically
from tests import disk

ROOT = Path(__file__).resolve().parents[4]
STATE = Path(".local/state/mcp-server-bundle")
AT_ONCE = """
import multiprocessing, sys
from servers.bundle.commands.install import main as install
from servers.bundle.commands.install import uninstall
context = multiprocessing.get_context("fork")
barrier = context.Barrier(6)
command = {"install": install, "uninstall": uninstall}[sys.argv[1]]

def run(words):
    barrier.wait()
    sys.exit(command(words))

names = [(client, client + number) for client in ("claude-code", "cursor") for number in "123"]
words = [["fetch", "--client", client, "--name", name] for client, name in names]
processes = [context.Process(target=run, args=(one,)) for one in words]
for process in processes:
    process.start()
for process in processes:
    process.join()
sys.exit(sum(process.exitcode for process in processes))
"""
MEDDLED = """
import sys
from pathlib import Path
from servers.bundle.commands.install import main as install

def meddle(event, args):
    if event == "open" and "/..claude.json." in str(args[0]):
        Path(".claude.json").write_bytes(b'{"numStartups": 2}')

sys.addaudithook(meddle)
sys.exit(install(["fetch", "--client", "claude-code"]))
"""


def run(program: str, home: Path, *words: str) -> tuple[int, str]:
    """Runs a program in that home directory; returns its exit code and stderr."""
    env = {"HOME": str(home), "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=home, env=env, capture_output=True, text=True)
    return done.returncode, done.stderr


def files(home: Path) -> list[str]:
    """Returns all files except the backups."""
    found = [path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()]
    return sorted(path for path in found if "/backups/" not in path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no process there is a copy of another")
def test_concurrent_changes_are_all_written(tmp_path: Path) -> None:
    """Six processes change the files of two clients."""
    assert run(AT_ONCE, tmp_path, "install") == (0, "")
    for client, path in (("claude-code", ".claude.json"), ("cursor", ".cursor/mcp.json")):
        entries = json.loads((tmp_path / path).read_text())["mcpServers"]
        assert sorted(entries) == [f"{client}{number}" for number in "123"]
    assert run(AT_ONCE, tmp_path, "uninstall") == (0, "")
    # No receipt was lost either, so that removal restores the files.
    assert files(tmp_path) == [f"{STATE.as_posix()}/installed.json"]


def test_a_lock_that_stays_locked_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No option sets the time to wait for a lock.
    monkeypatch.setattr("servers.bundle.hosts.files._WAIT_SECONDS", 0)
    lock = tmp_path / "state" / "lock"
    with hold_lock(lock), pytest.raises(ValueError, match=f"another command has locked {lock}"), hold_lock(lock):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process there is never killed by a signal")
def test_a_change_killed_at_any_stage_leaves_whole_files_and_no_lock(tmp_path: Path) -> None:
    """No temporary file is left either."""
    words = [sys.executable, str(Path(__file__).parent / "killed.py"), str(tmp_path / "home")]
    (tmp_path / "home").mkdir()
    done = subprocess.run(words, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "cursor, from None to second: more than ten stages",
        "cursor, from first to second: more than ten stages",
        "codex, from first to None: more than ten stages",
    ], done.stderr


@pytest.mark.slow
def test_a_concurrent_write_of_the_client_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_bytes(b"{}")
    code, stderr = run(MEDDLED, tmp_path)
    assert (code, "has just been changed by another program" in stderr) == (2, True)
    assert (tmp_path / ".claude.json").read_bytes() == b'{"numStartups": 2}'
    assert files(tmp_path) == [".claude.json", f"{STATE.as_posix()}/installed.json"]


def test_only_the_newest_backups_of_a_file_stay(tmp_path: Path) -> None:
    backups = tmp_path / "kept"
    other = back_up(backups, tmp_path / "other" / "[mcp].json", b"other")
    made = [back_up(backups, tmp_path / "[mcp].json", str(number).encode()) for number in range(MAX_BACKUPS + 3)]
    assert sorted(backups.iterdir()) == [other, *made[3:]]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_write_keeps_the_mode_of_the_file(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch(mode)
    path.chmod(mode)
    write_atomically(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
def test_a_new_file_is_readable_by_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.touch(0o644)
    made = disk.made(monkeypatch)
    write_atomically(path, b"new")
    assert made == [0o600]


@pytest.mark.skipif(sys.platform == "win32", reason="directories are not synced there")
def test_the_file_is_synced_before_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = disk.synced(monkeypatch)
    write_atomically(tmp_path / "made" / "x", b"new")
    assert synced == [3, ["x"]]


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root writes for others")
def test_a_write_keeps_the_owner_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    os.chown(path, 65534, 65533)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid, path.read_bytes()) == (65534, 65533, b"new")


def test_a_write_follows_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    write_atomically(link, b"new")
    assert (link.is_symlink(), (tmp_path / "real").read_bytes()) == (True, b"new")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of a file")
def test_a_failed_write_leaves_the_file_and_no_temporary_file(tmp_path: Path) -> None:
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
