"""The settings file: its values, their precedence, and its secrets."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from servers.filesystem.settings import Settings
from shared.program.run import Options
from shared.program.settings.options import read_options
from shared.program.settings.settings_file import read_settings_file
from tests.shared.program.options_given import GIVEN, words

FIELDS = {**Settings.model_fields, **Options.model_fields}


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def of_file(folder: Path, text: str, *arguments: str, **environment: str) -> tuple[Options, Settings]:
    """Reads the options of the filesystem server with a settings file of this text."""
    file, given = read_settings_file(write(folder / "settings.toml", text), FIELDS).options, words(*arguments)
    return (
        read_options(Options, given, environment, "MCP", file),
        read_options(Settings, given, environment, "MCP_FILESYSTEM", file),
    )


def in_toml(value: Any) -> str:
    return json.dumps(str(value) if isinstance(value, Path) else value)


@pytest.mark.parametrize("between", "-_")
def test_command_line_and_environment_override_the_settings_file(between: str, tmp_path: Path) -> None:
    lines = [f"{name.replace('_', between)} = {in_toml(one.other)}" for name, one in GIVEN.items()]
    path = write(tmp_path / "settings.toml", "\n".join(lines))
    file = read_settings_file(path, FIELDS).options
    from_file, wrong = read_options(Options, {}, {}, "MCP", file), {}
    for name, one in GIVEN.items():
        variable = {f"MCP_{name.upper()}": "".join(one.written[:1]) or "yes"}
        from_variable = read_options(Options, {}, variable, "MCP", file)
        from_line = read_options(Options, words(*one.words(name)), {}, "MCP", file)
        found = [getattr(options, name) for options in (from_file, from_variable, from_line)]
        first = one.value[:1] if isinstance(one.value, list) else one.value
        if found != [tmp_path / one.other if isinstance(one.other, Path) else one.other, first, one.value]:
            wrong[name] = found
    assert not wrong


def test_server_settings_come_from_the_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, folder = tmp_path / "home", tmp_path / "folder"
    for path in (home, folder / "a", folder / "b"):
        path.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    text = 'roots = ["a", "~", "/"]\nroot = ["b:rw"]\nallow-write = true\ndeny = ["*.log"]\nmax_read = 5_000'
    settings = of_file(folder, text)[1]
    assert settings.roots == [folder / "a", home, Path("/")]
    assert settings.directories[-1] == (folder / "b", True)
    assert (settings.allow_write, settings.deny, settings.max_read) == (True, ["*.log"], 5_000)
    # A list on the command line replaces that of the file.
    assert of_file(folder, text, "--deny", "c")[1].deny == ["c"]


class Named(BaseModel):
    """Settings with named paths."""

    file: list[str] = Field([], json_schema_extra={"paths_after": "="})


def test_a_named_path_is_relative_to_the_settings_file(tmp_path: Path) -> None:
    path = write(tmp_path / "settings.toml", "file = ['a=b', 'a=b=c:rw', 'a=/b', 'a=', 'a=:memory:', 'a']")
    options, _ = read_settings_file(path, Named.model_fields)
    at = str(tmp_path)
    assert options["file"].value == [f"a={at}/b", f"a={at}/b=c:rw", "a=/b", "a=", "a=:memory:", f"{at}/a"]


def test_secrets_come_from_the_settings_file(tmp_path: Path) -> None:
    text = "roots = ['.']\ntoken = 'hunter2'"
    assert of_file(tmp_path, text)[0].token == "hunter2"
    assert of_file(tmp_path, text, MCP_TOKEN="hunter3")[0].token == "hunter3"


@pytest.mark.skipif(os.name != "posix", reason="these permissions are those of POSIX: run it on Linux or macOS")
@pytest.mark.parametrize(("mode", "exposed"), [(0o600, False), (0o620, False), (0o640, True), (0o604, True)])
def test_a_secret_readable_by_others_is_reported(mode: int, exposed: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "settings.toml", "token = 'hunter2'\nport = 1")
    path.chmod(mode)
    assert read_settings_file(path, FIELDS).exposed == (f"{path}: token" if exposed else None)
