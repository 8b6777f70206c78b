"""What the operator may set: which libraries there are, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from servers.prompts.library.libraries import STARTER
from servers.prompts.settings import Settings


def test_the_starter_library_stands_in_for_none_and_comes_last_beside_others(tmp_path: Path) -> None:
    assert Settings().roots == [STARTER]
    assert Settings(libraries=[tmp_path]).roots == [tmp_path]
    assert Settings(libraries=[tmp_path], starter=True).roots == [tmp_path, STARTER]


def test_a_tilde_means_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "prompts").mkdir()
    settings = Settings(libraries=[Path("~/prompts")], files=[Path("~")])
    assert (settings.roots, settings.files) == ([tmp_path / "prompts"], [tmp_path])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"libraries": [""]}, "the name of a directory is empty"),
        ({"files": [""]}, "the name of a directory is empty"),
        ({"libraries": ["/nowhere"]}, "/nowhere is not a directory"),
        ({"files": [__file__]}, "is not a directory"),
        ({"libraries": ["~nobody-of-that-name/x"]}, "~nobody-of-that-name/x is not a directory"),
        ({"allow_write": True}, "--allow-write takes a DIR"),
        ({"allow_write": True, "starter": True}, "--allow-write takes a DIR"),
    ],
)
def test_what_can_not_be_is_refused(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        Settings(**given)


def test_prompts_may_be_written_to_a_library(tmp_path: Path) -> None:
    assert Settings(libraries=[tmp_path], allow_write=True).allow_write
