import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servers.common.files.checked import PathWalker
from servers.common.files.posix import DescriptorWalker
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from shared.coded_errors import PathError
from shared.program.files.entries import Place
from tests.descriptors import descriptors, left_open

SECRET = "TOP SECRET"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the root with a secret."""
    path = tmp_path / "root_evil"
    path.mkdir()
    (path / "secret").write_text(SECRET)
    return path


@pytest.fixture
def files(root: Path) -> Iterator[RootedFiles]:
    opened = RootedFiles(Roots([root], writable=True))
    yield opened
    opened.close()


def opened_by(way: str, roots: Roots) -> RootedFiles:
    """The files below the roots, found by a race-free or a checked walker."""
    return RootedFiles(roots, DescriptorWalker(roots) if way == "race-free" else PathWalker(roots))


def read(files: RootedFiles, written: str | Path) -> str:
    """The text of a file."""
    with files.open_file(files.roots.place(str(written))) as handle:
        return os.read(handle.descriptor, 100).decode()


def code(files: RootedFiles, written: str | Path) -> str:
    """The code of the error that reading a file raises."""
    with pytest.raises(PathError) as caught:
        read(files, written)
    return caught.value.code


def outcome(files: RootedFiles, written: str | Path) -> str:
    """The text of a file, or the code of the error."""
    try:
        return read(files, written)
    except PathError as error:
        return error.code


@pytest.fixture(params=["race-free", "checked"])
def way(request: pytest.FixtureRequest) -> str:
    """The kind of walker that finds the files."""
    return str(request.param)


@pytest.fixture
def either(root: Path, way: str) -> Iterator[RootedFiles]:
    """The same files, found by each kind of walker."""
    opened = opened_by(way, Roots([root], writable=True))
    yield opened
    opened.close()


@pytest.fixture
def at(files: RootedFiles) -> Callable[[str], Place]:
    """The place of a relative path."""
    return files.roots.place


@pytest.fixture
def no_leak() -> Iterator[None]:
    """Fails a test that leaves descriptors open."""
    before = descriptors()
    yield
    assert left_open(before) == []


SWAPPING = """
import os, shutil, sys
os.chdir(sys.argv[1])
print("on", flush=True)

def rename(one, other):
    try:
        os.rename(one, other)
    except OSError:
        # The server made a directory in the moment in which there was none.
        shutil.rmtree("dir", ignore_errors=True)
        rename(one, other)

while True:
    for one, other in (("dir", "kept"), ("link", "dir"), ("dir", "link"), ("kept", "dir")):
        rename(one, other)
"""


@contextmanager
def swapping(root: Path) -> Iterator[None]:
    """A process that swaps `dir` between a directory and a link to the outside, as fast as it can."""
    with subprocess.Popen([sys.executable, "-c", SWAPPING, str(root)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()
