"""`list` and `info` show what the catalog says."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from servers.bundle.catalog import Catalog, load_catalog
from servers.bundle.program import COMMANDS, main
from shared.kit.program import needs_extra
from shared.version import __version__

ROOT = Path(__file__).resolve().parents[4]
ENTRIES = load_catalog().servers
each = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
DICE = {
    "name": "dice", "title": "Dice", "version": "1", "summary": "Rolls.", "description": "Rolls dice.",
    "category": "testing", "module": "dice.server", "transports": ["stdio"], "resources": ["dice://\x1b[31mred"],
}  # fmt: skip


@pytest.fixture
def dice(tmp_path: Path) -> str:
    path = tmp_path / "catalog.yaml"
    path.write_text(yaml.safe_dump({"servers": [DICE]}))
    return str(path)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")


@each
def test_list_shows_each_server_and_what_it_asks_for(entry, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{entry.name} ")]
    assert entry.summary in line
    assert (f"changes nothing without {entry.permissions.writing}" in line) == bool(entry.permissions.writing)


def test_list_says_in_plain_words_what_is_opened_and_reached(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list"])
    shown = capsys.readouterr().out
    assert "opens what you name with DIR, --root, and nothing else; connects to no other host" in shown
    assert "connects to hosts of the public internet; changes nothing" in shown


def test_list_gives_programs_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    assert Catalog.model_validate_json(capsys.readouterr().out) == load_catalog()


@each
def test_info_shows_everything_the_catalog_says(entry, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", entry.name]) == 0
    shown = capsys.readouterr().out
    said = [entry.title, entry.description, *entry.tools.read, *entry.tools.write, *entry.prompts, entry.licence]
    said += [entry.category, entry.icon, entry.module]
    said += [*entry.resources, *entry.resource_templates, entry.documentation]
    said += [
        text for one in entry.arguments for text in (one.description, one.environment, one.option or one.metavar)
    ]
    assert [text for text in said if text not in shown] == []


@pytest.mark.parametrize(
    "words",
    [["list"], *(["info", entry.name] for entry in ENTRIES), ["--help"], *([name, "--help"] for name in COMMANDS)],
    ids=" ".join,
)
def test_at_80_columns_no_word_is_broken(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with suppress(SystemExit):
        main(words)
    shown = capsys.readouterr().out
    # What has a blank in it is broken there, by us; a path is one word, however long it is.
    assert [line for line in shown.splitlines() if len(line) > 80 and " " in line.strip()] == []
    monkeypatch.setenv("COLUMNS", "500")
    with suppress(SystemExit):
        main(words)
    assert set(capsys.readouterr().out.split()) == set(shown.split())


def test_info_shows_how_to_start_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    main(["info", "filesystem"])
    shown = capsys.readouterr().out
    assert "Start over stdio\n  mcp-bundle-filesystem DIR\n" in shown
    assert "Start over HTTP\n  mcp-bundle-filesystem --transport http --port 8000 DIR\n" in shown
    assert "config filesystem DIR --client CLIENT\n" in shown


def test_info_marks_the_tools_that_write(capsys: pytest.CaptureFixture[str]) -> None:
    main(["info", "prompts"])
    assert "Tools that write, with --allow-write\n  save_prompt, delete_prompt\n" in capsys.readouterr().out


def test_info_gives_programs_the_entry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "sqlite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == load_catalog().entry("sqlite").model_dump(mode="json")


def test_another_catalog_is_shown_as_well(dice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "dice", "--catalog", dice]) == 0
    assert "python -m dice.server" in capsys.readouterr().out


def test_what_a_catalog_says_cant_colour_the_terminal(dice: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["info", "dice", "--catalog", dice])
    shown = capsys.readouterr().out
    assert "dice://" in shown
    assert "\x1b" not in shown


@pytest.mark.slow
def test_what_the_catalog_names_is_found_where_a_wheel_puts_it(tmp_path: Path) -> None:
    for package in ("servers", "shared"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "catalog.yaml", tmp_path / "servers")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "servers", "list", "--json"], cwd=tmp_path, env=env, capture_output=True, check=True
    )
    for entry in json.loads(done.stdout)["servers"]:
        for name in ("icon", "documentation"):
            assert Path(entry[name]).is_file()
            assert Path(entry[name]).is_relative_to(tmp_path)


@pytest.mark.parametrize(
    ("written", "shown"),
    [("docs/dice.md", "{folder}/docs/dice.md"), ("https://dice.example/manual", "https://dice.example/manual")],
)
def test_the_documentation_of_another_catalog_is_shown_as_what_it_is(written: str, shown: str, dice: str) -> None:
    Path(dice).write_text(yaml.safe_dump({"servers": [{**DICE, "documentation": written}]}))
    (entry,) = load_catalog(Path(dice)).servers
    assert entry.documentation == shown.format(folder=Path(dice).parent)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["info", "files"], "there is no server 'files' in the catalog; there are: filesystem, sqlite"),
        (["info"], "the following arguments are required: NAME"),
        (["list", "--catalog", "/nowhere.yaml"], "/nowhere.yaml: No such file or directory"),
        (["lits"], "invalid choice: 'lits' (choose from "),
        (["--verson"], "unrecognized arguments: --verson"),
        (["run", "files"], "invalid choice: 'files' (choose from "),
        (["list", "--jsno"], "unrecognized arguments: --jsno; did you mean --json?"),
    ],
)
def test_what_cant_be_shown_is_refused_in_one_line(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    complaint = capsys.readouterr().err
    assert ended.value.code == 2
    assert reason in complaint
    assert complaint.count("\n") == 1


def test_the_console_script_is_the_same_program() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = declared["mcp-server-bundle"].partition(":")
    assert getattr(import_module(module), name) is main


def test_usage_names_what_was_called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["/home/me/.local/bin/mcp-server-bundle", "list", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.startswith("usage: mcp-server-bundle list ")


def test_a_library_that_is_missing_is_named_with_its_fix() -> None:
    script = "import sys; sys.modules['yaml'] = None; from servers.bundle.program import main; main(['list'])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"yaml is not installed; {needs_extra('catalog')}\n" in done.stderr


def test_it_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"mcp-server-bundle {__version__}\n")


def test_without_a_command_all_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    told = capsys.readouterr()
    assert (told.out, [name for name in COMMANDS if f"\n  {name} " not in told.err]) == ("", [])


def test_a_refusal_has_no_escape_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(yaml.safe_dump({"servers": [{**DICE, "\x1b[31m\u202e": 1}]}))
    with pytest.raises(SystemExit):
        main(["list", "--catalog", str(path)])
    assert capsys.readouterr().err.endswith("servers.0.\ufffd[31m\ufffd: Extra inputs are not permitted\n")


@pytest.mark.slow
def test_what_a_pipe_does_not_take_is_written_in_ascii(tmp_path: Path) -> None:
    (tmp_path / "\u00e9").mkdir()
    words = ["install", "filesystem", "\u00e9", "--client", "cursor", "--dry-run"]
    command = [sys.executable, "-m", "servers", *words]
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    shown = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, check=True).stdout
    assert b"\\xe9" in shown


@pytest.mark.slow
def test_a_reader_that_goes_ends_a_command_without_a_word() -> None:
    command = [sys.executable, "-m", "servers", "demo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.close()
        assert demo.stderr.read() == ""
        assert demo.wait() == 1


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["connect"], "[OPTION ...] URL"),
        (["expose"], "[OPTION ...] -- COMMAND [ARGUMENT ...]"),
        (["run", "--join"], "--join [OPTION ...] [NAME ...]"),
    ],
)
def test_the_usage_of_a_door_says_what_it_needs(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    assert capsys.readouterr().out.splitlines()[0].endswith(f" {words[0]} {usage}")


def test_what_takes_no_arguments_of_the_server_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("install", "uninstall"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert ("[ARGUMENT ...]" in capsys.readouterr().out) == (command == "install")
