import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servers.filesystem.access.beneath import Beneath
from servers.filesystem.access.roots import Place, Roots

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
def files(root: Path) -> Iterator[Beneath]:
    opened = Beneath(Roots([root], writable=True))
    yield opened
    opened.close()


@pytest.fixture(params=[True, False], ids=["race-free", "checked"])
def either(root: Path, request: pytest.FixtureRequest) -> Iterator[Beneath]:
    """The same files through either walker."""
    opened = Beneath(Roots([root], writable=True), race_free=request.param)
    yield opened
    opened.close()


@pytest.fixture
def at(files: Beneath) -> Callable[[str], Place]:
    """The place of a relative path."""
    return files.roots.place


@pytest.fixture
def no_leak() -> Iterator[None]:
    """Fails the test when it leaves descriptors open."""
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) == before
