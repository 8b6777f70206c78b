"""Options from the command line and the environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from servers.filesystem.settings import Settings
from shared.program.run import Options
from shared.program.settings.options import read_options
from tests.shared.program.options_given import GIVEN, SECRETS, parser, words


def options(arguments: list[str], environment: dict[str, str]) -> Options:
    return read_options(Options, words(*arguments), environment, "MCP")


def test_the_test_table_covers_every_option() -> None:
    assert GIVEN.keys() | SECRETS == set(Options.model_fields)


def test_an_option_comes_from_the_command_line_or_the_environment() -> None:
    wrong = {}
    for name, one in GIVEN.items():
        variable, empty = {f"MCP_{name.upper()}": one.other_written}, {f"MCP_{name.upper()}": ""}
        line = one.words(name)
        found = [
            getattr(options(*given), name) for given in (([], variable), (line, {}), (line, variable), ([], empty))
        ]
        if found != [one.other, one.value, one.value, Options.model_fields[name].default]:
            wrong[name] = found
    assert not wrong


def test_secrets_are_not_command_line_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert options([], {"MCP_TOKEN": "hunter2"}).token == "hunter2"
    with pytest.raises(SystemExit, match="2"):
        options(["--token", "hunter2"], {})
    assert "hunter2" not in parser().format_help()


def test_help_names_values_and_fits_the_terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (60, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = parser().format_help()
        assert shown.startswith("usage: files [OPTION ...] [DIR ...]\n")
        assert columns / 2 < max(map(len, shown.splitlines())) <= columns
        assert all(one in shown for one in ("--root DIR:MODE", "--trace FILE", "--port VALUE"))


@pytest.mark.parametrize(
    ("arguments", "environment", "roots", "writes"),
    [
        (["a", "b"], {}, ["a", "b"], False),
        (["--allow-write", "a", "--log-level", "info", "b"], {}, ["a", "b"], True),
        (["a", "--no-allow-write"], {"MCP_FILESYSTEM_ALLOW_WRITE": "yes"}, ["a"], False),
        (["a"], {"MCP_FILESYSTEM_ROOTS": "b", "MCP_FILESYSTEM_ALLOW_WRITE": "1"}, ["a"], True),
        ([], {"MCP_FILESYSTEM_ROOTS": os.pathsep.join(["a", "", "b"])}, ["a", "b"], False),
        (["--", "-c"], {}, ["-c"], False),
    ],
)
def test_server_settings_come_from_arguments_and_environment(
    arguments: list[str],
    environment: dict[str, str],
    roots: list[str],
    writes: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "-c"):
        (tmp_path / name).mkdir()
    settings = read_options(Settings, words(*arguments), environment, "MCP_FILESYSTEM")
    assert ([str(root) for root in settings.roots], settings.allow_write) == (roots, writes)


def test_unvalidated_defaults_equal_validated_ones() -> None:
    script = (
        "from shared.program.process import Options; from shared.program.settings.options import read_options\n"
        "options = read_options(Options, {}, has_valid_defaults=True); assert not Options.__pydantic_complete__\n"
        "assert options == Options(), options\n"
        "assert vars(options) == vars(Options.model_validate(options.model_dump(exclude_none=True)))"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
