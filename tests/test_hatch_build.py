"""Sources renamed by the build for a wheel; tests/checks/bundle/test_wheel.py installs one."""

import re
from pathlib import Path

import pytest

from hatch_build import MOVED, move, rename
from tests.architecture import MODULES, SOURCES

ROOT = Path(__file__).resolve().parents[1]


def test_only_imports_are_renamed() -> None:
    source = '''"""Not a line of code: from shared import text."""

from shared import Server
from shared.text import (
    plain,
)
from shared_things import other
from .shared import own


def late() -> None:
    from servers.catalog import Entry  # from shared
'''
    assert (
        rename(source)
        == '''"""Not a line of code: from shared import text."""

from mcp_server_bundle import Server
from mcp_server_bundle.text import (
    plain,
)
from shared_things import other
from .shared import own


def late() -> None:
    from mcp_server_bundle.servers.catalog import Entry  # from shared
'''
    )


def test_an_import_that_binds_an_old_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^line 2: write `from ... import` instead of `import shared.text`$"):
        rename("import os\nimport shared.text\n")


@pytest.mark.parametrize("source", ["from \\\n    shared import text\n", "from  shared import text\n"])
def test_an_import_that_cannot_be_renamed_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"^line 1: write `from shared` with one space, on one line$"):
        rename(source)


@pytest.mark.slow
def test_moved_files_are_complete_and_import_only_new_names(tmp_path: Path) -> None:
    move(ROOT, tmp_path / "moved")
    texts = {
        path.relative_to(tmp_path / "moved").as_posix(): path.read_text(encoding="utf-8")
        for path in (tmp_path / "moved").rglob("*.py")
    }
    assert texts.keys() == {path.removeprefix("shared/") for path in SOURCES}
    old = re.compile(rf"^\s*(from|import) ({'|'.join(MOVED)})\b", re.MULTILINE)
    assert [path for path, text in texts.items() if old.search(text)] == []


def test_no_string_names_one_of_our_modules() -> None:
    """It would be wrong in a wheel: `__package__` has the right name. Loggers have the same name everywhere."""
    strings = re.compile(rf"""(?<!getLogger\()["']((?:{"|".join(MOVED)})\.[\w.]+)""")
    named = {path: set(strings.findall(source.text)) & MODULES for path, source in SOURCES.items()}
    assert {path: names for path, names in named.items() if names} == {}
    assert [path for path, source in SOURCES.items() if "getLogger(__name__)" in source.text] == []
