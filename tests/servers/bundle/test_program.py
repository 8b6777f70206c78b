"""The bundle's program: its commands, their errors and exit codes."""

import os
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from servers.bundle.program import COMMANDS, main
from shared.program.messages import missing_extra_message
from shared.version import __version__
from tests.servers.bundle.refusals import not_refused, refused

ROOT = Path(__file__).resolve().parents[3]
TINY = [sys.executable, "-I", "-S", str(Path(__file__).with_name("tiny.py"))]


def shown_in(columns: int, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.MonkeyPatch.context() as patch, suppress(SystemExit):
        patch.setenv("COLUMNS", str(columns))
        main(words)
    return capsys.readouterr().out


def test_no_line_exceeds_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    words = [["list"], ["info", "filesystem"], ["info", "postgres"], ["--help"]]
    for arguments in [*words, *([name, "--help"] for name in COMMANDS)]:
        shown = shown_in(80, arguments, capsys)
        # Lines with a space must wrap; a path is one word of any length.
        assert [line for line in shown.splitlines() if len(line) > 80 and " " in line.strip()] == [], arguments
        assert set(shown_in(500, arguments, capsys).split()) == set(shown.split()), arguments


REFUSED = [
    (["info", "files"], "there is no server 'files' in the catalog; available: filesystem, sqlite"),
    (["info"], "the following arguments are required: NAME"),
    (["lits"], "invalid choice: 'lits' (choose from "),
    (["--verson"], "unrecognized arguments: --verson"),
    (["run", "files"], "invalid choice: 'files' (choose from "),
    (["list", "--jsno"], "unrecognized arguments: --jsno; did you mean --json?"),
]


def test_unknown_names_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert [words for words, reason in REFUSED if reason not in refused(capsys, main, *words)] == []


WITH_CATALOG = [
    *(["list"], ["info", "fetch"], ["doctor"], ["serve"], ["open", "."], ["run", "--join", "fetch"]),
    *([*words, "--client", "cursor"] for words in (["config", "fetch"], ["config", "fetch", "sqlite"])),
    *([name, "fetch", "--client", "cursor"] for name in ("install", "uninstall")),
    *(["export", "mcpb", "fetch", "--output", "out"], ["inspect", "fetch"], ["watch", "fetch"]),
    *(["call", "fetch", "fetch"], ["read", "fetch", "a:b"], ["prompt", "fetch", "a"]),
]


def test_each_command_reads_the_catalog_that_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "/nowhere.yaml: No such file or directory"
    rows = [([*words, "--catalog", "/nowhere.yaml"], reason) for words in WITH_CATALOG]
    assert not_refused(capsys, main, rows) == {}


def test_an_error_message_has_no_escape_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(yaml.safe_dump({"servers": [], "\x1b[31m\u202e": 1}))
    assert ": \ufffd[31m\ufffd: there is no such field" in refused(capsys, main, "list", "--catalog", str(path))


def test_the_console_script_runs_the_same_main() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = declared["mcp-server-bundle"].partition(":")
    assert getattr(import_module(module), name) is main


def test_usage_names_the_called_program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["/home/me/.local/bin/mcp-server-bundle", "list", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.startswith("usage: mcp-server-bundle list ")


@pytest.mark.slow
def test_a_missing_library_is_named_with_its_fix() -> None:
    script = "import sys; sys.modules['yaml'] = None; from servers.bundle.program import main; main(['list'])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"yaml is not installed; {missing_extra_message('catalog')}\n" in done.stderr


def test_version_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"mcp-server-bundle {__version__}\n")


def test_no_command_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    printed = capsys.readouterr()
    assert (printed.out, [name for name in COMMANDS if f"\n  {name} " not in printed.err]) == ("", [])


@pytest.mark.slow
def test_unencodable_output_is_escaped_in_ascii(tmp_path: Path) -> None:
    (tmp_path / "\u00e9").mkdir()
    words = ["install", "filesystem", "\u00e9", "--client", "cursor", "--dry-run"]
    command = [sys.executable, "-m", "servers", *words]
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    shown = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, check=True).stdout
    assert b"\\xe9" in shown


@pytest.mark.slow
def test_a_closed_pipe_ends_a_command_silently() -> None:
    command = [sys.executable, "-m", "servers", "demo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.close()
        assert demo.stderr.read() == ""
        assert demo.wait() == 1


def test_usage_shows_the_required_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    usages = {
        "connect": "[OPTION ...] URL",
        "expose": "[OPTION ...] -- COMMAND [ARGUMENT ...]",
        "run --join": "--join [OPTION ...] [NAME ...]",
        "install": "NAME [ARGUMENT ...] --client CLIENT",
    }
    for command, usage in usages.items():
        shown = shown_in(500, [*command.split(), "--help"], capsys)
        assert shown.splitlines()[0].endswith(f" {command.split()[0]} {usage}")
    # A command without server arguments shows none.
    assert "[ARGUMENT ...]" not in shown_in(500, ["uninstall", "--help"], capsys)


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")


@pytest.mark.slow
@FULL
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["accounts"],
        ["config", "filesystem", ".", "--client", "claude-desktop"],
        ["inspect", "-", "--", *TINY],
        ["read", "-", "tiny://picture", "--", *TINY],
        ["call", "-", "measure", "--json", "--", *TINY],
    ],
    ids=lambda words: words[0],
)
def test_a_full_disk_is_reported_in_one_line(words: list[str], unbuffered: str) -> None:
    """The error is not that of a lost connection."""
    command, env = [sys.executable, "-m", "servers", *words], {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, cwd=ROOT, env=env, check=False)
    why = f"python -m servers {words[0]}: the output can't be written: No space left on device"
    # `config` first prints where its output belongs.
    assert (ended.returncode, ended.stderr.decode().splitlines()[-1]) == (2, why)
    assert words[0] == "config" or ended.stderr.decode().count("\n") == 1
