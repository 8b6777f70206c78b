"""`call`, `read`, `prompt` and `inspect` with a server that starts at once: output and exit codes."""

import json
import sys
from pathlib import Path

import pytest

from servers.bundle.program import main
from servers.bundle.terminal.display import Piece
from tests.servers.bundle.refusals import exit_code, refused

SERVER = ["--", sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "tiny.py")]
ROOT = Path(__file__).resolve().parents[4]
PNG = b"\x89PNG\n"


def ended(*words: str) -> int:
    """Runs a command with the server; returns its exit code."""
    command, *others = words
    return exit_code(main, command, "-", *others, *SERVER)


def test_arguments_are_converted_by_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("call", "repeat", "text=12", "--timeout", "9", "count=12", "tags=a", "tags=b") == 0
    assert json.loads(capsys.readouterr().out) == {"text": "12", "count": 12, "tags": ["a", "b"]}
    # Arguments in JSON are sent unchanged.
    assert ended("call", "repeat", "--arguments", '{"count": "x", "other": null}') == 0
    assert json.loads(capsys.readouterr().out) == {"count": "x", "other": None}


WRONG = [
    (["call", "repaet", "text=a"], "there is no tool 'repaet'; did you mean 'repeat'?"),
    (["call", "repeat", "txt=a"], "there is no argument 'txt'; did you mean 'text'?"),
    (["call", "repeat", "count=1"], "repeat needs text=text"),
    (["call", "repeat", "text=a", "count=many"], "count: expected integer, got 'many'"),
    (["call", "repeat", "text=a", "mode=fsat"], "mode: expected fast, slow, got 'fsat'; did you mean 'fast'?"),
    (["call", "repeat", "text"], "'text' is not an argument: write KEY=VALUE"),
    (["call", "repeat", "--arguments", "[1]"], "--arguments takes one JSON object"),
    (["call", "repeat", "--arguments", '{"count": NaN}'], "--arguments takes one JSON object"),
    (["call", "repeat", "--arguments", '{"count": 1e999}'], "--arguments takes one JSON object"),
    (["call", "draw", "--out", "/nowhere/a.png"], "--out: there is no directory /nowhere"),
    (["prompt", "greet"], "greet needs who=TEXT"),
    (["prompt", "great"], "there is no prompt 'great'; did you mean 'greet'?"),
    (["prompt", "bye"], "there is no prompt 'bye'; available: greet; the server says: there is no such thing"),
    (["prompt", "greet", "who=a", "who=b"], "who takes one value, but got 2"),
    (
        ["inspect", "--dialect", "001"],
        "argument --dialect: invalid choice: '001' (choose from '000', '002'); see --help",
    ),
    (["inspect", "--timeout", "0"], "argument --timeout: must be a number of seconds; see --help"),
]


def test_wrong_usage_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [(words, refused(capsys, lambda words: ended(*words), *words)) for words, _ in WRONG]
    assert errors == WRONG


@pytest.mark.parametrize(("document", "tool", "given"), [("000", "hand/add", "5"), ("002", "add", '{"sum": 5}')])
def test_a_server_of_another_dialect_is_called(
    capsys: pytest.CaptureFixture[str], document: str, tool: str, given: str
) -> None:
    server = ["--", sys.executable, "-I", str(ROOT / "tests" / "shared" / "client" / "document_server.py"), document]
    words = ["call", "-", tool, "a=2", "b=3", "--dialect", document, *server]
    assert exit_code(main, *words) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(given)


def test_framing_is_refused_for_a_url(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["inspect", "http://127.0.0.1:9/mcp", "--framing", "lines"]
    error = refused(capsys, lambda given: exit_code(main, *given), *words)
    assert error == "--framing is only for a server that this command starts: HTTP has no framing"


def test_failures_give_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("call", "fail") == 1
    assert capsys.readouterr() == ("", "\x1b[31mno luck\n")
    assert ended("call", "fail", "--json") == 1
    assert json.loads(capsys.readouterr().out)["isError"] is True
    assert ended("read", "tiny://nothing") == 1
    assert capsys.readouterr().err.endswith(" refused the request: there is no such thing\n")


def test_a_tool_that_is_not_listed_is_refused_by_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("call", "locked", "text=a") == 1
    assert capsys.readouterr() == ("", "locked: start me with --unlock\n")


@pytest.mark.slow
def test_a_missing_tool_is_reported_with_the_unavailable_servers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "both.yaml"
    config.write_text("join: true\nservers: {everything: {}, other: {command: [/no/such]}}")
    command = [sys.executable, "-m", "servers", "run", "--join", "--config", str(config)]
    assert main(["call", "-", "say_it", "--", *command]) == 2
    assert capsys.readouterr().err.endswith("; not available at the moment: other\n")


def test_missing_server_arguments_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "filesystem", "list_allowed_directories"]) == 3
    error = capsys.readouterr().err
    assert error.endswith(": specify at least one DIR that may be read; its arguments are given after `--`\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("app = 1", ": the server ended the connection; does it end with `run(app)`?"),
        (
            "import pydantic\nclass S(pydantic.BaseModel):\n    root: str\nS()",
            ".ValidationError: 1 validation error for S; root; Field required [type=missing, input_value={}, "
            "input_type=dict]",
        ),
        ("def load():\n    import gone\nload()", "; its last output: ModuleNotFoundError: No module named 'gone'"),
    ],
)
def test_a_file_without_a_server_is_explained(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(text)
    assert main(["call", str(tmp_path / "own.py"), "say_it"]) == 3
    assert capsys.readouterr().err.endswith(f"{message}\n")


STARTING = """
import sys
sys.path.insert(0, {root!r})
from pydantic import BaseModel
from shared import Implementation, Server
from shared.program.run import run
class Settings(BaseModel):
    count: int = 1
app = Server[None](Implementation(name="notes", version="1"), settings=Settings)
@app.lifespan
async def opened(opening):
    {action}
    yield
run(app)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "count", "message"),
    [
        ("open('/no/such')", "1", "notes.py: /no/such: No such file or directory"),
        ("pass", "x", "notes.py: MCP_NOTES_COUNT: write a whole number"),
        ("raise KeyError('title')", "1", "its last output: KeyError: 'title'"),
        ("raise RuntimeError", "1", "its last output: RuntimeError"),
    ],
)
def test_a_failing_server_shows_only_its_own_error(
    action: str, count: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "notes.py"
    program.write_text(STARTING.format(root=str(ROOT), action=action))
    assert main(["call", str(program), "say_it", "--env", f"MCP_NOTES_COUNT={count}"]) == 3
    assert capsys.readouterr().err.endswith(f"{message}\n")


@pytest.mark.slow
def test_read_only_and_missing_directory_errors_come_from_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["call", "filesystem", "write_file", f"path={tmp_path / 'a.txt'}", "content=a", "--"]
    assert main([*words, str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("read_only: this server was started without --allow-write")
    assert main([*words, str(tmp_path / "none")]) == 3
    assert capsys.readouterr().err.endswith(f"DIR: {tmp_path / 'none'} is not a directory\n")
    assert main(words) == 3
    assert capsys.readouterr().err.endswith(
        ": specify at least one DIR that may be read; its arguments are given after `--`\n"
    )


def test_a_server_that_exits_gives_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("call", "vanish", "--verbose") == 3
    error = capsys.readouterr().err
    assert "python -m servers call: the connection to " in error.partition(" was lost: ")[0]
    assert error.endswith("; its last output: out of ink\n")
    # --verbose prints its log.
    assert "out of ink\n" in error.partition("the connection to ")[0]
    assert main(["inspect", "-", "--", "/no/server"]) == 3
    assert capsys.readouterr().err.endswith("no connection to server: /no/server: No such file or directory\n")


def test_a_server_that_does_not_answer_gives_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("call", "hang", "--timeout", "0.3") == 3
    expected = " does not answer: no response within 0.3 s; increase --timeout to wait longer\n"
    assert capsys.readouterr().err.endswith(expected)


def test_images_are_described_or_saved_to_numbered_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("call", "draw") == 0
    assert capsys.readouterr().out.startswith("[image/png, 5 bytes; --out FILE saves it]\ntwo\n")
    # A hostile media type forges no line.
    assert Piece(data=b"", mime="image/png\nsaved").describe("how") == "[image/png saved, 0 bytes; how]"
    assert ended("call", "draw", "--out", str(tmp_path / "a.png")) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.png": PNG, "a-2.png": PNG}
    printed = capsys.readouterr()
    assert printed.out == "two\n[image/png: its 'data' is not base64]\n"
    assert f"saved {tmp_path / 'a.png'}: image/png, 5 bytes\n" in printed.err
    # Structured content without a text is printed.
    assert ended("call", "measure") == 0
    assert json.loads(capsys.readouterr().out) == {"width": 80}


def test_read_saves_a_text_to_a_file(tmp_path: Path) -> None:
    assert ended("read", "tiny://text", "--out", str(tmp_path / "a")) == 0
    assert (tmp_path / "a").read_text() == "plain \x1b[2J\u202e text"


def test_an_image_is_written_to_a_pipe_unchanged(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert ended("read", "tiny://picture") == 0
    assert capfdbinary.readouterr().out == PNG


def test_linked_resources_are_saved_before_the_server_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended("call", "export") == 0
    shown = capsys.readouterr()
    assert shown.out == "tiny://text\n"
    assert "the links point to this server and work only while it runs; --out FILE saves their contents" in shown.err
    assert ended("call", "export", "--out", str(tmp_path / "a.txt")) == 0
    assert (tmp_path / "a.txt").read_bytes() == "plain \x1b[2J\u202e text".encode()


def test_an_answer_with_an_unreadable_link_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("call", "export_all", "--out", str(tmp_path / "a.txt")) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("done\n")
    assert "tiny://none: there is no such thing" in shown.err
    assert "tiny://vanish: " in shown.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_an_answer_that_cannot_be_saved_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a-2.png").mkdir()
    assert ended("call", "draw", "--out", str(tmp_path / "a.png")) == 2
    shown = capsys.readouterr()
    assert shown.out.startswith("two\n")
    assert f"--out: {tmp_path / 'a-2.png'}: " in shown.err


def test_links_beyond_the_limit_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("call", "export_many", "--out", str(tmp_path / "a.txt")) == 0
    assert "1 more link not saved: at most 100 of one answer are" in capsys.readouterr().err


def test_prompt_messages_are_printed_with_their_roles(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("prompt", "greet", "who=Ann") == 0
    assert capsys.readouterr().out == "user:\nHello\nassistant:\nAnn\n"
    # `prompt` has no `--out`.
    assert main(["prompt", "everything", "test_prompt_with_image"]) == 0
    assert " bytes; --json prints it]\n" in capsys.readouterr().out


def test_inspect_json_has_the_fields_of_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("inspect", "--json") == 0
    offers = json.loads(capsys.readouterr().out)
    assert (offers["server"]["name"], offers["version"]) == ("tiny", "2025-11-25")
    assert [tool["name"] for tool in offers["tools"]][:2] == ["repeat", "fail"]


def test_env_passes_variables_to_the_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDED", "on")
    shows = "import os, sys; sys.stderr.write('\\n ' + os.environ['HANDED'] + '  ' + os.environ['SET'] + '\\n\\n')"
    assert main(["inspect", "-", "--env", "HANDED", "--env", "SET=up", "--", sys.executable, "-c", shows]) == 3
    assert capsys.readouterr().err.endswith("; its last output: on up\n")
