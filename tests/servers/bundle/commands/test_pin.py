"""`pin` with a server that starts at once: output, accepted pins and exit codes."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from servers.bundle.program import main
from servers.bundle.program_name import program_name
from servers.gateway.proxy.pins import MAX_LINE, MAX_LINES, differences
from servers.gateway.rules.pins import Pins
from tests.servers.bundle.refusals import exit_code

pytestmark = pytest.mark.usefixtures("own_home")

SERVER = Path(__file__).parents[1] / "tiny.py"


def tool(name: str, description: str = "Does it.", **properties: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}}


class Place(NamedTuple):
    """A configuration with one third-party server, and the tools of that server."""

    path: Path

    def offer(self, *tools: Any) -> None:
        (self.path / "tools.json").write_text(json.dumps(tools))

    def write(self, **settings: Any) -> None:
        command = [sys.executable, "-I", "-S", str(SERVER), str(self.path / "tools.json")]
        servers = {"other": {"command": command, "pin": True, **settings}, "filesystem": {}}
        (self.path / "bundle.yaml").write_text(json.dumps({"servers": servers}))

    def pin(self, *words: str, name: str = "other") -> int:
        return exit_code(main, "pin", name, "--config", str(self.path / "bundle.yaml"), *words)

    @property
    def pins(self) -> Pins:
        return Pins(self.path / "other.pins.json")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.write()
    made.offer(tool("a"), tool("b"))
    return made


def test_pin_without_accept_writes_no_pins(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.pin() == 0
    assert place.pins.is_new
    assert "no tools are pinned yet: --accept pins them now" in capsys.readouterr().out
    assert place.pin("--accept") == 0
    assert place.pins.names == ["a", "b"]
    assert f"pinned in {place.path}/other.pins.json: all of them" in capsys.readouterr().out


def test_pin_of_a_silent_server_suggests_no_option_that_it_lacks(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write(command=[sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"])
    monkeypatch.setattr("servers.bundle.commands.pin.SECONDS", 0.3)
    assert place.pin() == 3
    assert capsys.readouterr().err.endswith("no connection to other: no response within 0.3 s\n")


def test_pin_prints_changed_new_and_missing_tools(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.pin("--accept")
    place.offer(tool("a", "Does it.\nAnd more."), tool("c", "Is new.", x={}, y={}))
    capsys.readouterr()
    assert place.pin() == 1
    out = capsys.readouterr().out.splitlines()
    assert out[:-1] == [
        "other: 2 tools",
        "matching their pins: 0",
        "changed: a",
        "  description:",
        "    + And more.",
        "new: c",
        "    Is new.",
        "    arguments: x, y",
        "gone: b",
    ]
    assert out[-1] == f"accept with: {program_name()} pin other --config {place.path}/bundle.yaml --accept"


def test_single_tools_can_be_accepted(place: Place) -> None:
    place.pin("--accept")
    place.offer(tool("a", "Is another."), tool("b", "Is another."))
    assert place.pin("--accept", "a") == 1
    assert place.pin("--accept", "b") == 0
    assert place.pin() == 0
    # The pin of a missing tool can be removed.
    place.offer(tool("a", "Is another."))
    assert place.pin("--accept", "b") == 0
    assert place.pins.names == ["a"]
    # Both definitions of a tool that is listed twice must match.
    place.offer(tool("a", "Is another."), tool("a"))
    assert place.pin() == 1


def test_denied_tools_are_not_compared_with_pins(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.pin("--accept")
    place.write(tools={"deny": ["b", "c"]})
    place.offer(tool("a"), tool("b", "Is another."), tool("c"))
    assert place.pin() == 0
    assert "changed" not in capsys.readouterr().out


def test_escape_codes_of_the_server_are_printed_escaped(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.pin("--accept")
    place.offer(tool("a", "\x1b[2J\u202eevil\u200b"), tool("b\x1b]0;x"))
    assert place.pin() == 1
    out = capsys.readouterr().out
    assert "\\x1b[2J\\u202eevil\\u200b" in out
    assert "b\\x1b]0;x" in out
    assert "\x1b" not in out


WRONG: list[tuple[str, list[str], str]] = [
    ("none", [], "no third-party server named 'none' (with a `command` or a `url`) is configured; available: other"),
    ("filesystem", [], "servers.filesystem: this is one of the bundle's own servers, which need no pins"),
    ("other", ["--accept", "none"], "there is no tool 'none'"),
]


def test_unknown_servers_tools_and_invalid_pins_are_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    for name, words, why in WRONG:
        assert place.pin(*words, name=name) == 2
        assert why in capsys.readouterr().err
    place.pins.path.write_text("{")
    assert place.pin() == 2
    assert "not a pin file; remove it to pin the tools again" in capsys.readouterr().err


def test_a_server_that_exits_gives_exit_code_3(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (place.path / "tools.json").write_text("{}")
    assert place.pin() == 3
    assert "the connection to other was lost" in (stderr := capsys.readouterr().err)
    assert "its last output: no tools today" in stderr


def test_accept_warns_when_pins_have_no_effect(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.write(pin=False)
    assert place.pin("--accept") == 0
    assert "its pins have no effect" in capsys.readouterr().err


def test_long_differences_are_truncated_with_a_count() -> None:
    lines = differences({"name": "a"}, {"name": "a", "description": "\n".join(["x" * 500] * 100)})
    assert len(lines) == MAX_LINES + 1
    assert max(map(len, lines)) == MAX_LINE + len(" ...")
    assert lines[-1] == "  ... and 41 more lines"
