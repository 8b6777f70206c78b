"""Commands in a terminal of 80 columns."""

import sys
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

from tests.servers.bundle.terminal.terminal import terminal

TINY = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "tiny.py")]


@pytest.mark.slow
def test_read_prints_no_escape_codes_and_no_image_bytes(tmp_path: Path) -> None:
    for uri, shown in (
        ("tiny://text", "plain \ufffd[2J\ufffd text\r\n"),
        ("tiny://picture", "[image/png, 5 bytes; --out FILE saves it]\r\n"),
    ):
        with terminal(["read", "-", uri, "--", *TINY], tmp_path) as shell:
            assert shell.end() == 0
            assert shell.raw == shown


ANSWERS = (
    ("- nickname: Nickname\n  text at least 2 at most 20: ", "A"),
    ("  the value is shorter than 2 characters\n  text at least 2 at most 20: ", "Ann"),
    ("- email\n  email: ", ""),
    ("  this value is required\n  email: ", "ann"),
    ('  the value is not a "email"\n  email: ', "ann@example.com"),
    ("- homepage\n  uri [https://example.com]: ", ""),
    ("- birthday\n  date [2000-01-01]: ", ""),
    ("- fingers\n  integer from 0 to 20 [10]: ", "nine"),
    ("  fingers: expected integer, got 'nine'\n  integer from 0 to 20 [10]: ", "9"),
    ("- height: in metres\n  number from 0.3 to 3 [1.7]: ", ""),
    ("- newsletter\n  yes or no [no]: ", "yes"),
    ("- colours\n  1  red\n  2  green\n  3  blue\n  numbers, separated by commas: ", "1, blue"),
)
FORM = '"fingers":9,"height":1.7,"newsletter":true,"colours":["red","blue"]'


@pytest.mark.slow
def test_call_asks_the_questions_of_the_server(tmp_path: Path) -> None:
    with terminal(["call", "everything", "elicit_every_field"], tmp_path) as shell:
        shell.wait_for("The server asks: Please describe yourself.\n(an empty line takes")
        for question, typed in ANSWERS:
            shell.wait_for(question)
            shell.type(f"{typed}\n")
        assert shell.end() == 0
        assert FORM in shell.shown


@pytest.mark.parametrize(("answer", "status"), [("", 1), ("n", 1), ("y", 0)])
def test_a_question_without_fields_is_accepted_only_by_yes(tmp_path: Path, answer: str, status: int) -> None:
    (tmp_path / "a.txt").touch()
    options = ["--", "--allow-write", "--confirm", str(tmp_path)]
    with terminal(["call", "filesystem", "delete_file", "path=a.txt", *options], tmp_path) as shell:
        shell.wait_for("Agree? [y/N] ")
        shell.type(f"{answer}\n")
        assert shell.end() == status
    assert (tmp_path / "a.txt").exists() is (status == 1)


@pytest.mark.slow
def test_ctrl_d_declines_a_question(tmp_path: Path) -> None:
    with terminal(["call", "everything", "elicit_visit"], tmp_path) as shell:
        shell.wait_for("\n  https://example.com/consent\nOpen it in a browser where you trust it.\nContinue? [y/N] ")
        shell.type("\x04")
        assert shell.end() == 1
        assert "declined\n" in shell.shown


@pytest.mark.slow
def test_call_shows_progress(tmp_path: Path) -> None:
    with terminal(["call", "everything", "long_call", "seconds=0.5", "steps=4"], tmp_path) as shell:
        shell.wait_for("1/4")
        assert shell.end() == 0
        assert shell.shown.endswith("Took 0.5 seconds in 4 steps.\n")


@pytest.mark.slow
def test_ctrl_c_ends_a_call_that_asks_a_question(tmp_path: Path) -> None:
    with terminal(["call", "everything", "test_elicitation"], tmp_path) as shell:
        shell.wait_for("Ctrl+D declines")
        shell.interrupt()
        assert shell.end() == 130


@pytest.mark.slow
def test_watch_prints_a_change_and_runs_the_command(tmp_path: Path) -> None:
    notes = tmp_path / "a;b $(id).txt"
    notes.touch()
    echo = 'printf "%s of %s\\n" "$WATCH_KIND" "$WATCH_URI"'
    with terminal(["watch", "filesystem", notes.as_uri(), "--exec", echo, "--", str(tmp_path)], tmp_path) as shell:
        shell.wait_for("watching 1 resource; press Ctrl+C to stop\n")
        notes.write_text("new")
        shell.wait_for(f"  changed {notes.as_uri()}\n")
        shell.wait_for(f"resource of {notes.as_uri()}\n")
        shell.interrupt()
        assert shell.end() == 130


FORGETFUL = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    match request["method"]:
        case "initialize":
            capabilities = {"resources": {"subscribe": True}}
            info = {"name": "forgetful", "version": "1"}
            outcome = {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}}
        case "resources/subscribe":
            outcome = {"result": {}}
        case _:
            outcome = {"error": {"code": -32601, "message": "no"}}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)
    if request["method"] == "resources/subscribe" and not os.path.exists("ended"):
        open("ended", "w").close()
        sys.exit()
"""


@pytest.mark.slow
def test_watch_reports_possibly_missed_changes(tmp_path: Path) -> None:
    with terminal(["watch", "-", "a:b", "--", sys.executable, "-c", FORGETFUL], tmp_path) as shell:
        shell.wait_for("  missed: the connection was lost, and anything may have changed\n")
        shell.interrupt()
        assert shell.end() == 130


@pytest.mark.slow
def test_watch_refuses_a_server_without_subscriptions(tmp_path: Path) -> None:
    with terminal(["watch", "-", "tiny://text", "--", *TINY], tmp_path) as shell:
        assert shell.end() == 2
        assert shell.shown == "python -m servers watch: the server does not report changes to resources\n"
