"""Settings of the operator: libraries, and invalid values."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from servers.prompts import server
from servers.prompts.library.libraries import STARTER
from servers.prompts.remote import updates
from servers.prompts.remote.updates import Updates
from servers.prompts.server import app as prompts
from servers.prompts.settings import Narrowing, Settings
from shared.program.messages import missing_extra_message
from tests.servers.peers import ada_and_bob, inside, record


def test_the_starter_library_is_the_default_or_the_last_library(tmp_path: Path) -> None:
    assert Settings().roots == [STARTER]
    assert Settings(libraries=[tmp_path]).roots == [tmp_path]
    assert Settings(libraries=[tmp_path], starter=True).roots == [tmp_path, STARTER]


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "prompts").mkdir()
    settings = Settings(libraries=[Path("~/prompts")], files=[Path("~")])
    assert (settings.roots, settings.files) == ([tmp_path / "prompts"], [tmp_path])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"libraries": [""]}, "a directory name is empty"),
        ({"files": [""]}, "a directory name is empty"),
        ({"libraries": ["/nowhere"]}, "/nowhere is not a directory"),
        ({"files": [__file__]}, "is not a directory"),
        ({"libraries": ["~nobody-of-that-name/x"]}, "~nobody-of-that-name/x is not a directory"),
        ({"allow_write": True}, "--allow-write needs a DIR"),
        ({"allow_write": True, "starter": True}, "--allow-write needs a DIR"),
    ],
)
def test_invalid_settings_are_refused(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        Settings(**given)


def test_allow_write_is_accepted_with_a_library(tmp_path: Path) -> None:
    assert Settings(libraries=[tmp_path], allow_write=True).allow_write


async def test_every_option_reaches_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetch_nothing(*_: Any) -> None:
        pass

    for method in ("begin", "run"):
        monkeypatch.setattr(Updates, method, fetch_nothing)
    fetched = record(monkeypatch, updates, "Updates")
    opened = record(monkeypatch, server, "Libraries", "Folder")
    address = "git+https://a.example/b"
    options = f"{tmp_path} --starter --refresh-minutes 7 --library {address} --files {tmp_path}"
    async with inside(prompts, *options.split()):
        pass
    (checkout,), minutes = fetched["Updates"]
    assert (str(checkout.address), minutes) == (address, 7)
    assert opened == {
        "Libraries": ([tmp_path, checkout.root, STARTER], {checkout.root: checkout}),
        "Folder": (tmp_path,),
    }


# Narrowed settings of a principal


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    for name in ("ada", "bob"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"of_{name}.md").write_text(f"---\ndescription: one of {name}\n---\nSay {name}.\n")
    return tmp_path


async def test_a_principal_sees_only_its_libraries(libraries: Path) -> None:
    settings = Settings(libraries=[libraries / "ada", libraries / "bob"])
    ada_alone = settings.narrow(Narrowing(libraries=[libraries / "ada"]))
    async with ada_and_bob(prompts, settings, ada_alone) as (ada, bob):
        names = [
            [one["name"] for one in (await peer.request("prompts/list"))["result"]["prompts"]] for peer in (ada, bob)
        ]
        assert names[0] == ["of_ada"]
        assert set(names[1]) == {"of_ada", "of_bob"}
        assert "unknown prompt" in str(await ada.request("prompts/get", {"name": "of_bob"}))
        assert "of_bob" not in str(await ada.request("resources/list"))
        assert "of_bob" not in await ada.text("search_prompts", query="one")


@pytest.mark.parametrize(("given", "writes"), [("ada", True), ("bob", False)])
def test_a_principal_may_write_only_to_the_first_library(given: str, *, writes: bool, libraries: Path) -> None:
    settings = Settings(libraries=[libraries / "ada", libraries / "bob"], allow_write=True)
    assert settings.narrow(Narrowing(libraries=[libraries / given])).allow_write is writes


def test_a_library_of_a_principal_must_belong_to_the_server(libraries: Path) -> None:
    settings = Settings(libraries=[libraries / "ada"])
    with pytest.raises(ValueError, match="is not in any"):
        settings.narrow(Narrowing(libraries=[libraries / "bob"]))
    with pytest.raises(ValueError, match="name at least one"):
        settings.narrow(Narrowing())


def test_a_missing_package_is_reported_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    # `None` in sys.modules has the same effect as a missing package.
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ValidationError, match=re.escape(missing_extra_message("prompts"))):
        Settings()
