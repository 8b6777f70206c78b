"""What the build makes of the sources that go into a wheel; tests/checks/bundle/test_wheel.py installs one."""

import re
from pathlib import Path

import pytest

from hatch_build import MOVED, move, rename
from tests.architecture import MODULES, SOURCES

ROOT = Path(__file__).resolve().parents[1]


def test_imports_have_the_new_names_and_nothing_else_changes() -> None:
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
def test_an_import_that_can_not_be_changed_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"^line 1: write `from shared` with one space, on one line$"):
        rename(source)


@pytest.mark.slow
def test_all_files_are_there_and_none_imports_by_an_old_name(tmp_path: Path) -> None:
    move(ROOT, tmp_path / "moved")
    texts = {
        path.relative_to(tmp_path / "moved").as_posix(): path.read_text(encoding="utf-8")
        for path in (tmp_path / "moved").rglob("*.py")
    }
    assert texts.keys() == {path.removeprefix("shared/") for path in SOURCES}
    old = re.compile(rf"^\s*(from|import) ({'|'.join(MOVED)})\b", re.MULTILINE)
    assert [path for path, text in texts.items() if old.search(text)] == []


def test_no_string_is_the_name_of_one_of_our_modules() -> None:
    """It would be wrong in a wheel: `__package__` knows where a file stands. A log has the same name everywhere."""
    strings = re.compile(rf"""(?<!getLogger\()["']((?:{"|".join(MOVED)})\.[\w.]+)""")
    named = {path: set(strings.findall(source.text)) & MODULES for path, source in SOURCES.items()}
    assert {path: names for path, names in named.items() if names} == {}
    assert [path for path, source in SOURCES.items() if "getLogger(__name__)" in source.text] == []
