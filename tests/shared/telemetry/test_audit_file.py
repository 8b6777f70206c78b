"""The file of the audit log: no torn or lost line, despite concurrent writers, rotation, moves and full disks."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from shared.telemetry import audit_file
from shared.telemetry.audit_file import AuditFile

WRITER = """
import sys
from pathlib import Path
from shared.telemetry.audit_file import AuditFile

file = AuditFile(Path(sys.argv[1]), max_bytes=20_000, files=1_000)
for number in range(int(sys.argv[3])):
    file.write(b'{"who":"%s","number":%d,"more":"%s"}\\n' % (sys.argv[2].encode(), number, b"x" * (number % 300)))
file.close()
"""
FULL = """
import resource, sys
from pathlib import Path
from shared.telemetry.audit_file import AuditFile

path = Path(sys.argv[1])
file = AuditFile(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000_000))
written = failed = 0
for number in range(20):
    try:
        file.write(b"x" * 99 + b"\\n" if number else b"y" * 49 + b"\\n")
        written += 1
    except OSError:
        failed += 1
size = path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
file.write(b"z" * 99 + b"\\n")
print(written, failed, size)
"""


def lines_of(folder: Path) -> list[bytes]:
    """All lines of all files but the lock."""
    files = [path for path in folder.iterdir() if path.suffix != ".lock"]
    return [line for path in files for line in path.read_bytes().splitlines(keepends=True)]


def test_lines_are_appended_to_an_existing_file(tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        file = AuditFile(tmp_path / "audit")
        file.write(line)
        file.close()
    assert (tmp_path / "audit").read_bytes() == b"one\ntwo\n"


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    (tmp_path / "audit").touch(0o644)
    file = AuditFile(tmp_path / "audit", max_bytes=10)
    for _ in range(3):
        file.write(b"123456789\n")
    file.close()
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_full_file_is_rotated_and_the_oldest_is_deleted(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit", max_bytes=20, files=3)
    for number in range(8):
        file.write(b"line %4d\n" % number)
    file.close()
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix != ".lock"}
    assert contents == {
        "audit": b"line    6\nline    7\n",
        "audit.1": b"line    4\nline    5\n",
        "audit.2": b"line    2\nline    3\n",
    }


def test_a_single_file_is_emptied_when_full(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit", max_bytes=20, files=1)
    for number in range(3):
        file.write(b"line %4d\n" % number)
    file.close()
    assert lines_of(tmp_path) == [b"line    2\n"]


def test_a_line_longer_than_the_limit_gets_its_own_file(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit", max_bytes=20, files=3)
    file.write(b"short\n")
    file.write(b"x" * 100 + b"\n")
    file.close()
    assert (tmp_path / "audit").read_bytes() == b"x" * 100 + b"\n"


@pytest.mark.parametrize("gone", ["moved", "deleted"])
def test_a_moved_or_deleted_file_is_reopened(tmp_path: Path, gone: str) -> None:
    path, now = tmp_path / "audit", 0.0
    file = AuditFile(path, clock=lambda: now)
    file.write(b"one\n")
    path.rename(tmp_path / "old") if gone == "moved" else path.unlink()
    file.write(b"two\n")
    now = 0.001
    file.write(b"three\n")
    file.close()
    assert path.read_bytes() == b"three\n"
    assert gone == "deleted" or (tmp_path / "old").read_bytes() == b"one\ntwo\n"


def test_a_torn_last_line_is_terminated(tmp_path: Path) -> None:
    (tmp_path / "audit").write_bytes(b"one\ntw")
    file = AuditFile(tmp_path / "audit")
    file.write(b"three\n")
    file.write(b"four\n")
    file.close()
    assert (tmp_path / "audit").read_bytes() == b"one\ntw\nthree\nfour\n"


def test_a_path_that_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/full")):
        with pytest.raises((ValueError, OSError)):
            AuditFile(path)


@pytest.mark.parametrize("is_locked", [True, False], ids=["by another process", "because it fails"])
def test_lines_are_written_even_if_rotation_fails(tmp_path: Path, is_locked: bool) -> None:
    file = AuditFile(tmp_path / "audit", max_bytes=10)
    other = FileLock(tmp_path / "audit.lock")
    if is_locked:
        other.acquire()
    else:
        (tmp_path / "audit.9").mkdir()
        (tmp_path / "audit.9" / "in the way").touch()
        (tmp_path / "audit.8").write_text("")
    for line in (b"one line\n", b"another\n"):
        file.write(line)
    other.release()
    file.close()
    assert (tmp_path / "audit").read_bytes() == b"one line\nanother\n"


@pytest.mark.slow
def test_concurrent_processes_lose_no_lines(tmp_path: Path) -> None:
    path, count = tmp_path / "audit", 1_000
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, who, str(count)]) for who in "abc"]
    assert [writer.wait(50) for writer in writers] == [0, 0, 0]
    lines = [json.loads(line) for line in lines_of(tmp_path)]
    assert {(one["who"], one["number"]) for one in lines} == {(w, n) for w in "abc" for n in range(count)}
    assert len(lines) == 3 * count
    assert (tmp_path / "audit.1").exists()  # how often it is rotated, they do not settle among them


@pytest.mark.slow
def test_a_full_disk_leaves_no_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True, timeout=50
    )
    assert done.stdout.split() == ["10", "10", "950"]
    lines = path.read_bytes().splitlines()
    assert len(lines) == 11
    assert lines[-1] == b"z" * 99
    assert {len(line) for line in lines} == {49, 99}


def test_a_line_in_progress_is_not_treated_as_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit"
    path.write_bytes(b"one\ntw")

    def finish(_seconds: float) -> None:
        with path.open("ab") as other:
            other.write(b"o\n")

    monkeypatch.setattr(audit_file.time, "sleep", finish)
    file = AuditFile(path)
    file.write(b"three\n")
    file.close()
    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_a_file_that_is_rotated_while_it_is_opened_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, protect = tmp_path / "audit", audit_file.protect_file

    def rotate(fd: int, opened: Path) -> None:
        protect(fd, opened)
        path.rename(f"{path}.1")

    monkeypatch.setattr(audit_file, "protect_file", rotate)
    file = AuditFile(path)
    monkeypatch.undo()
    file.write(b"one\n")
    file.close()
    assert path.read_bytes() == b"one\n"
