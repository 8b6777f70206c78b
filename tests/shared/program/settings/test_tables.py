"""The authorization tables of a settings file: their meaning, and their errors in one line."""

import tomllib
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from shared.auth.policy import Rules
from shared.program.settings.options import FileValue
from shared.program.settings.settings_file import read_settings_file
from shared.program.settings.tables import TABLES, read_rules


class Narrowing(BaseModel):
    roots: list[Path] = []


class Settings(BaseModel):
    narrowing: ClassVar[type[BaseModel]] = Narrowing
    roots: list[Path] = []

    def narrow(self, narrowing: Narrowing) -> "Settings":
        if any("outside" in str(root) for root in narrowing.roots):
            raise ValueError("roots: that is outside")
        return Settings(roots=narrowing.roots)


def read(text: str, tmp_path: Path, *, settings: BaseModel | None = None, common: Any = None) -> Rules:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    written = read_settings_file(path, TABLES).options
    together = None if common is None else FileValue(tomllib.loads(common), f"{path}: principal")
    return read_rules(written, path, settings or Settings(), together)


def scopes(text: str) -> frozenset[str]:
    return frozenset(text.split())


def test_scopes_are_read_by_tool_resource_and_prompt(tmp_path: Path) -> None:
    found = read('[scopes]\nrun = "a:run b"\n"resource:log" = ["a:log"]\n"prompt:x" = []\n', tmp_path)
    assert found.scopes == {"run": scopes("a:run b"), "resource:log": scopes("a:log"), "prompt:x": scopes("")}


def test_principals_have_scopes_and_settings(tmp_path: Path) -> None:
    text = '[principal."ada@example.org"]\nscopes = "a:read"\nroots = ["ada"]\n[principal."*"]\nscopes = []\n'
    found = read(text, tmp_path)
    ada, others = found.principals["ada@example.org"], found.principals["*"]
    assert (ada.ceilings, others.ceilings) == ((scopes("a:read"),), (scopes(""),))
    assert ada.settings == Settings(roots=[tmp_path / "ada"])
    assert others.settings is None
    assert found.narrowed_settings == {"ada@example.org": ada.settings, "*": None}


def test_principals_without_settings_need_no_run_of_their_own(tmp_path: Path) -> None:
    assert read('[principal.ada]\nscopes = "a"', tmp_path).narrowed_settings == {}


def test_an_empty_file_has_no_rules(tmp_path: Path) -> None:
    assert not read("", tmp_path)


def test_rules_for_all_servers_apply_in_addition(tmp_path: Path) -> None:
    found = read(
        '[principal.ada]\nscopes = "a"\n[principal."*"]\nscopes = "c"',
        tmp_path,
        common='[ada]\nscopes = "b"\n[bob]\nscopes = "d"',
    )
    assert found.principals["ada"].ceilings == (scopes("a"), scopes("b"))
    assert found.principals["bob"].ceilings == (scopes("c"), scopes("d"))
    assert found.principals["*"].ceilings == (scopes("c"),)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("scopes = 1", "scopes: must be a table"),
        ("[scopes]\nrun = 1", 'scopes."run": must be a scope or a list of scopes'),
        ("[scopes]\nrun = 'a\"b'", "is not a valid scope"),
        ('[scopes]\n"tool:run" = "a"', "must be the name of a tool, resource:SCHEME or prompt:NAME"),
        ("principal = 'ada'", "principal: must be a table"),
        ("[principal]\nada = 1", 'principal."ada": must be a table'),
        ("[principal.ada]\nscope = 'a'", "there is no option 'principal.\"ada\".scope'; did you mean 'scopes'?"),
        ("[principal.ada]\nscopes = 1", 'principal."ada".scopes: must be a scope'),
        ("[principal.ada]\nroots = 1", 'principal."ada".roots: '),
        ("[principal.ada]\nroots = ['outside']", 'principal."ada": roots: that is outside'),
    ],
)
def test_an_invalid_rule_is_refused_in_one_line(text: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:
        read(text, tmp_path)
    assert wrong in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "settings.toml"))
    assert "\n" not in str(caught.value)


def test_a_server_without_that_option_refuses_to_narrow_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no option 'principal\.\"ada\"\.roots'"):
        read("[principal.ada]\nroots = ['x']", tmp_path, settings=Narrowing())
