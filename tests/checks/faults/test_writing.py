"""What stays of a file when the process that writes it is killed, and when the disk is full."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIZE = 1 << 20
ROUNDS = 200
SETUP = """
import itertools, json, os, sys
from pathlib import Path
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.errors import FilesError
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.move import copy
from servers.filesystem.edit.write import write_file

files = RootedFiles(Roots([Path(sys.argv[1])], writable=True))
at = files.roots.place
"""
WRITER = f"""
def told(done):
    print(done, flush=True)

def work(_):
    for one, other in itertools.cycle(["ab", "cd", "ef"]):
        told(write_file(files, at("file"), one * {SIZE}))
        told(edit_files(files, [FileEdits(at("file"), [Edit(one * {SIZE}, other * {SIZE})])]))
        told(write_file(files, at("file"), other * {SIZE // 2}, "append"))
        told(write_file(files, at("file"), "x"))
"""
FORKING = """
for line in sys.stdin:
    if (child := os.fork()) == 0:
        print(os.getpid(), flush=True)
        work(line.strip())
    os.waitpid(child, 0)
    print("\\nover", flush=True)
"""
WHOLE = {letter * SIZE for letter in "abcdef"} | {letter * (SIZE + SIZE // 2) for letter in "bdf"} | {"x"}


@contextmanager
def killed_writers(script: str, folder: Path) -> Iterator[Callable[[str, int], list[str]]]:
    """What has a process do the `work` of `script`, given a word, and kills it when it has written so many lines; all
    its whole lines. Each of these processes is forked from one that has imported everything."""
    command = [sys.executable, "-c", script + FORKING, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None

        def kill_one(word: str, acts: int) -> list[str]:
            print(word, file=parent.stdin, flush=True)
            pid = int(parent.stdout.readline())
            done = [parent.stdout.readline() for _ in range(acts)]
            os.kill(pid, signal.SIGKILL)
            # The last one is what was cut off, or empty.
            return [*done, *iter(parent.stdout.readline, "over\n")][:-1]

        yield kill_one


@pytest.mark.timeout(1_800)
def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    chance = random.Random(ROUNDS)
    with killed_writers(SETUP + WRITER, tmp_path) as kill_one:
        for _ in range(ROUNDS):
            kill_one("", chance.randint(1, 9))
            assert (tmp_path / "file").read_text() in WHOLE
    leftovers = [path.name for path in tmp_path.iterdir() if path.name != "file"]
    assert not [name for name in leftovers if not (name.startswith(".mcp-") and name.endswith(".tmp"))]


FULL = """
def outcome(call, *arguments):
    try:
        call(*arguments)
    except FilesError as error:
        return error.code
    return "done"

def edits(*names):
    return [FileEdits(at(name), [Edit(name, name * 60_000)]) for name in names]

root = Path(sys.argv[1])
for name in "ab":
    write_file(files, at(name), name)
(root / "dir").mkdir()
for name in "12":
    (root / "dir" / name).write_bytes(bytes(70_000))
codes = {
    "write": outcome(write_file, files, at("a"), "x" * 300_000),
    "create": outcome(write_file, files, at("new"), "x" * 300_000),
    "append": outcome(write_file, files, at("a"), "x" * 300_000, "append"),
    "edit": outcome(edit_files, files, edits("a", "b")),
    "copy": outcome(copy, files, at("dir"), at("copy")),
}
left = {path.name: path.read_text() if path.is_file() else len(os.listdir(path)) for path in root.iterdir()}
print(json.dumps([codes, left, outcome(write_file, files, at("a"), "small")]))
"""


def own_mounts(folder: Path) -> list[str]:
    """What to put before a command so that it has a disk of 250 KB at `folder`, for itself alone; nothing where that
    can't be."""
    if not (shutil.which("unshare") and shutil.which("mount")):
        return []
    mount = 'mount -t tmpfs -o size=250k none "$0" && exec "$@"'
    prefix = ["unshare", *(["-m"] if os.geteuid() == 0 else ["-rm"]), "sh", "-c", mount, str(folder)]
    return prefix if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0 else []


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    prefix = own_mounts(tmp_path)
    if not prefix and not (os.environ.get("CI") == "true" and os.geteuid() == 0):
        pytest.skip("no small disk can be mounted here, which takes root or a user namespace: `sudo make check`")
    command = [*prefix, sys.executable, "-c", SETUP + FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    codes, left, afterwards = json.loads(done.stdout)
    assert codes == dict.fromkeys(["write", "create", "append", "edit", "copy"], "no_space")
    assert (left, afterwards) == ({"a": "a", "b": "b", "dir": 2}, "done")
