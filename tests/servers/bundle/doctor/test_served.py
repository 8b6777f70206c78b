"""`doctor --config`: findings about a configuration of `serve`, and about its third-party servers."""

import json
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from servers.bundle.doctor.findings import Finding, Severity
from servers.bundle.doctor.installation import CheckedInstallation
from servers.bundle.doctor.served import ServeConfiguration, examine_served
from servers.bundle.program import main
from servers.gateway.rules.pins import Pins
from tests.servers.bundle.doctor.machines import CATALOG, installed
from tests.servers.bundle.refusals import refused

SERVER = Path(__file__).parents[1] / "tiny.py"
TOKEN = "do-not-show-this-7c1f"
TOOLS = [{"name": name, "inputSchema": {"type": "object", "properties": {}}} for name in "ab"]


class Place(NamedTuple):
    """A directory with a configuration, and with the tools of a third-party server."""

    path: Path
    installation: CheckedInstallation

    @property
    def config(self) -> Path:
        return self.path / "bundle.yaml"

    def write(self, servers: dict[str, Any], **options: Any) -> None:
        self.config.write_text(json.dumps({"servers": servers, **options}))
        self.config.chmod(0o600)

    def other(self, **settings: Any) -> dict[str, Any]:
        """Returns the configuration of the third-party server."""
        return {"command": [sys.executable, "-I", "-S", str(SERVER), str(self.path / "tools.json")], **settings}

    async def look(self, *names: str, seconds: float = 60) -> list[Finding]:
        """Returns the findings about the servers and the file."""
        served = ServeConfiguration(self.config, CATALOG, self.installation, names, seconds)
        return [one for one in await examine_served(served) if one.where.startswith(str(self.config))]

    async def wrong(self) -> list[tuple[str, str]]:
        """Returns severity and text of the findings that are not OK."""
        return [(one.severity.value, one.what) for one in await self.look() if one.severity is not Severity.OK]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    return Place(tmp_path, installed(tmp_path / "venv"))


async def test_a_valid_configuration_has_only_ok_findings(place: Place) -> None:
    place.write({"filesystem": {"roots": ["."]}, "other": place.other()}, port=8123, join=["other"])
    found = await place.look()
    assert [(one.severity, one.where.removeprefix(str(place.config)), one.what) for one in found] == [
        (Severity.OK, "", "can be read, and names 2 servers"),
        (Severity.OK, ", 'filesystem'", "its settings are valid"),
        (Severity.OK, ", 'other'", "it starts, is tiny 1, speaks 2025-11-25, and has 2 tools"),
    ]
    # Only the given servers.
    assert [one.where for one in await place.look("filesystem")][1:] == [f"{place.config}, 'filesystem'"]


async def test_a_missing_configuration_is_a_fault(place: Place) -> None:
    (missing,) = [one for one in await place.look() if one.severity is Severity.FAULT]
    assert (missing.what, missing.fix) == (
        "No such file or directory",
        "pass the path of an existing file to --config",
    )


async def test_a_tool_named_like_that_of_another_server_is_a_warning(place: Place) -> None:
    (place.path / "tools.json").write_text(json.dumps([{**TOOLS[0], "name": "filesystem__write_file"}]))
    place.write({"other": place.other(), "filesystem": {"roots": [str(place.path)]}})
    (warned,) = [one for one in await place.look() if one.severity is Severity.WARNING]
    assert warned.what == "its tool filesystem__write_file looks like one of the server 'filesystem'"


async def test_unpinned_and_changed_tools_are_reported(place: Place) -> None:
    place.write({"other": place.other(pin=True)})
    assert (await place.look())[
        -1
    ].what == "its tools are not pinned yet: they will be pinned when a client first connects to `serve`"
    pins = Pins(place.path / "other.pins.json")
    pins.record(TOOLS, shows_apps=True)
    assert (await place.look())[-1].what == "its tools match their pins: 2"
    pins.record([{**TOOLS[0], "description": "Was another."}], shows_apps=False)
    found = (await place.look())[-1]
    assert found.severity is Severity.WARNING
    assert found.what == "withheld from clients, since their definitions do not match the pins: a, b"
    assert found.fix.endswith(f" pin other --config '{place.config}'; --accept accepts the changes")


async def test_rules_that_match_no_tool_are_warnings(place: Place) -> None:
    tools = {"allow": ["a", "b", "x*"], "deny": ["y"], "rename": {"a": "b"}, "describe": {"z": "Is none."}}
    place.write({"other": place.other(tools=tools)})
    assert await place.wrong() == [
        ("warning", "tools.allow has 'x*', which matches none of its tools"),
        ("warning", "tools.deny has 'y', which matches none of its tools"),
        ("warning", "tools.describe has 'z', which matches none of its tools"),
        ("warning", "its tool b is withheld: another tool is renamed to that"),
    ]


async def test_a_missing_command_is_a_fault(place: Place) -> None:
    place.write({"other": {"command": "no-such-program-here --x"}})
    found = (await place.look())[-1]
    assert (found.severity, found.what) == (Severity.FAULT, "it can't be started: No such file or directory")
    assert found.fix == f"install no-such-program-here, or correct its command in {place.config}"


async def test_last_output_belongs_to_its_server_and_has_no_secrets(place: Place) -> None:
    def ending(words: str) -> dict[str, Any]:
        return {"command": [sys.executable, "-I", "-S", "-c", f"import sys; sys.exit('{words}')"]}

    place.write({"one": {**ending(f"bad token {TOKEN}"), "env": {"TOKEN": TOKEN}}, "two": ending("of two")})
    found = await place.wrong()
    assert [severity for severity, _ in found] == ["fault", "fault"]
    assert [what.rpartition("; its last output: ")[2] for _, what in found] == ["bad token ***", "of two"]


async def test_a_server_that_does_not_answer_is_a_fault(place: Place) -> None:
    command = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"]
    place.write({"other": {"command": command}})
    assert (await place.look(seconds=0.2))[-1].what == "it does not answer within 0.2 seconds"


async def test_a_url_without_a_listener_is_a_fault(place: Place) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place.write({"other": {"url": f"http://127.0.0.1:{free.getsockname()[1]}/mcp", "token": TOKEN}})
        found = (await place.look())[-1]
    assert found.severity is Severity.FAULT
    assert "no connection" in found.what
    assert TOKEN not in found.line
    assert found.fix == f"check that the server is running, and that its url and token in {place.config} are correct"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": "http://localhost/mcp", "command": "x"}, "servers.other: specify either a command or a url"),
    ({"command": "x", "pinned": True}, "there is no option 'servers.other.pinned'"),
    ({"command": "x", "tools": {"rename": {"a": "c", "b": "c"}}}, "servers.other.tools: rename: 'a' and 'b'"),
]


async def test_a_fault_of_one_server_hides_no_other(place: Place) -> None:
    for server, what in WRONG:
        place.write({"other": server, "filesystem": {"roots": ["."], "no-such": 1}})
        first, second = await place.wrong()
        assert first[0] == second[0] == "fault"
        assert what in first[1]
        assert "there is no option 'servers.filesystem.no-such'" in second[1]


async def test_invalid_global_settings_are_faults(place: Place) -> None:
    place.write({"filesystem": {"roots": ["."]}}, port=99999)
    assert "port" in (await place.wrong())[0][1]
    place.write({"filesystem": {"roots": ["."]}}, join=["none"])
    assert (await place.wrong())[0][1] == "join: there is no server 'none'; available: filesystem"
    place.config.write_text("[")
    assert [severity for severity, _ in await place.wrong()] == ["fault"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")
async def test_a_secret_file_readable_by_others_is_a_warning(place: Place) -> None:
    (place.path / "token").write_text(TOKEN)
    (place.path / "token").chmod(0o644)
    place.write({"other": place.other(env={"API_KEY": {"file": "token"}})})
    found = next(one for one in await place.look() if one.severity is not Severity.OK)
    assert (found.severity, TOKEN in found.line) == (Severity.WARNING, False)
    assert "other users on this machine can read a secret" in found.what


async def test_an_invalid_pin_file_is_a_fault(place: Place) -> None:
    (place.path / "other.pins.json").write_text("{")
    place.write({"other": place.other(pin=True)})
    [(severity, what)] = await place.wrong()
    assert severity == "fault"
    assert "not a pin file" in what


def test_the_exit_code_reflects_the_findings(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.write({"other": place.other()})
    assert main(["doctor", "--config", str(place.config), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[-1]["what"].startswith("it starts, is tiny 1")
    place.write({"other": {"command": "no-such-program-here"}})
    assert main(["doctor", "--config", str(place.config)]) == 1


def test_client_and_config_options_are_mutually_exclusive(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("doctor", "--config", str(place.config), "--client", "cursor")
    assert "can't be used together" in refused(capsys, main, *words)
