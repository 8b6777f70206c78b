import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shared.kit.rooted.entries import Place
from shared.kit.rooted.files import RootedFiles
from shared.kit.rooted.roots import Roots
from tests.descriptors import left_open, settled_descriptors

SECRET = "TOP SECRET"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the root that holds a secret."""
    path = tmp_path / "root_evil"
    path.mkdir()
    (path / "secret").write_text(SECRET)
    return path


@pytest.fixture
def files(root: Path) -> Iterator[RootedFiles]:
    opened = RootedFiles(Roots([root], writable=True))
    yield opened
    opened.close()


@pytest.fixture(params=[True, False], ids=["race-free", "checked"])
def either(root: Path, request: pytest.FixtureRequest) -> Iterator[RootedFiles]:
    """The same files through either walker."""
    opened = RootedFiles(Roots([root], writable=True), race_free=request.param)
    yield opened
    opened.close()


@pytest.fixture
def at(files: RootedFiles) -> Callable[[str], Place]:
    """The place of a relative path."""
    return files.roots.place


@pytest.fixture
def no_leak() -> Iterator[None]:
    """Fails the test when it leaves descriptors open."""
    before = settled_descriptors()
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
    """A process that makes `dir` a directory and a link to the outside in turn, as fast as it can."""
    with subprocess.Popen([sys.executable, "-c", SWAPPING, str(root)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()
