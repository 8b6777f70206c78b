"""`python -m servers.gateway`, which equals `python -m servers run --join`: several servers on one pair of
streams."""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from servers.bundle.commands.run import main
from servers.catalog import CATALOG
from servers.gateway import program as gateway_program
from servers.gateway.program import JoinedProgram, run_gateway
from servers.gateway.serve import choice
from tests.raw import Raw, call, request
from tests.servers.bundle.refusals import not_refused, refused
from tests.servers.gateway.serve.test_bridge_server import configured, is_alive, started
from tests.servers.peers import record
from tests.shared.transports.http.http_wire import Json

PYTHON = started()["command"][0]
TINY = Path(__file__).parents[1] / "bundle" / "tiny.py"
GATEWAY = [PYTHON, "-m", "servers.gateway"]
JOIN = [PYTHON, "-m", "servers", "run", "--join"]


def joined(*arguments: str | Path, program: Sequence[str] = GATEWAY) -> Raw:
    return Raw([*program, *map(str, arguments)], env=dict(os.environ))


def names(process: Raw, id: str = "list") -> list[str]:
    process.send(request(id, "tools/list"))
    return [tool["name"] for tool in process.answer(id)["result"]["tools"]]


def text(process: Raw, message: Json) -> str:
    process.send(message)
    said: str = process.answer(message["id"])["result"]["content"][0]["text"]
    return said


@pytest.mark.parametrize("program", [GATEWAY, pytest.param(JOIN, marks=pytest.mark.slow)])
def test_named_servers_are_joined(program: Sequence[str]) -> None:
    with joined("sqlite", "prompts", program=program) as process:
        found = names(process.open())
        assert {"read_query", "search_prompts"} <= {*found}
        assert "fetch" not in found
        assert "customers" in text(process, call(1, "list_tables"))
        process.close_stdin()
        assert process.wait() == 0
        assert process.stderr() == ""


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["end of input", "SIGTERM"])
def test_all_servers_of_a_configuration_end_together(ends: str, tmp_path: Path) -> None:
    with joined("--config", configured(tmp_path, others={"other": started()}, prefix="always", port=1)) as process:
        assert {"other__pid", "prompts__search_prompts"} <= {*names(process.open())}
        pid = int(text(process, call(1, "other__pid")))
        assert is_alive(pid)
        if ends == "SIGTERM":
            process.process.send_signal(signal.SIGTERM)
        else:
            process.close_stdin()
        assert process.wait() == 0
        assert not is_alive(pid)


@pytest.mark.slow
def test_a_missing_program_does_not_affect_other_members(tmp_path: Path) -> None:
    others = {"other": {"command": ["/there/is/none"]}}
    with joined("--config", configured(tmp_path, others=others, join=["prompts", "other"])) as process:
        assert "search_prompts" in names(process.open())
        process.close_stdin()
        assert process.wait() == 0


REFUSED = [
    (["--join", "--config", "/there/is/none"], "/there/is/none: No such file or directory"),
    (["--join", "--port", "1"], "unrecognized arguments: --port"),
    (["--join", "prompts", "--trace", "/there/is/none"], "--trace: /there/is/none: No such file or directory"),
    (["--prefix", "never", "--join"], "argument --prefix: invalid choice: 'never' (choose"),
]


def test_invalid_arguments_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert not not_refused(capsys, main, REFUSED)


def test_the_gateway_program_has_no_join_option(capsys: pytest.CaptureFixture[str]) -> None:
    def gateway(words: Sequence[str]) -> int:
        return run_gateway("gateway", words)

    assert refused(capsys, gateway, "--join") == "unrecognized arguments: --join; see --help"
    assert refused(capsys, gateway, "--config", "/there/is/none").startswith("/there/is/none: No such file")


def test_every_option_reaches_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = record(monkeypatch, gateway_program, "JoinedProgram", "load_catalog")
    monkeypatch.setattr(JoinedProgram, "run", lambda *_: 7)
    monkeypatch.setattr(choice, "set_limits", lambda *_: None)  # of servers that other tests open
    config, catalog = tmp_path / "bundle.yaml", tmp_path / "catalog.yaml"
    catalog.write_bytes(CATALOG.read_bytes())
    config.write_text(json.dumps({"servers": {"sqlite": {"demo": True}, "prompts": {}}, "join": ["prompts"]}))
    options = ["--config", str(config), "--catalog", str(catalog), "--prefix", "always", "--max-result", "2000"]
    for names, joined_names in (([], ["prompts"]), (["sqlite"], ["sqlite"])):
        assert run_gateway("gateway", [*options, *names]) == 7
        servers, prefix, common = given["JoinedProgram"]
        assert ([server.name for server in servers], prefix, common.max_result) == (joined_names, "always", 2_000)
    assert given["load_catalog"] == (catalog,)


def test_a_single_name_runs_the_program_of_that_server(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["sqlite", "--version"])
    assert capsys.readouterr().out.startswith("sqlite ")


@pytest.mark.slow
def test_a_third_party_server_can_not_take_calls_for_another(tmp_path: Path) -> None:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("prompts__list", "search_prompts")]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    other = {"command": [PYTHON, "-I", "-S", str(TINY), str(tmp_path / "tools.json")]}
    config = tmp_path / "bundle.yaml"
    config.write_text(json.dumps({"servers": {"other": other, "prompts": {}}}))
    config.chmod(0o600)
    with joined("--config", config) as process:
        listed = names(process.open())
        assert {"prompts__search_prompts", "other__search_prompts", "other__prompts__list"} <= {*listed}
        assert not {"prompts__list", "search_prompts"} & {*listed}
        process.send(call("taken", "prompts__list"))
        assert "unknown tool" in process.answer("taken")["error"]["message"]
        assert text(process, call("ours", "prompts__search_prompts", query="x")) != '{"query": "x"}'
        process.close_stdin()
        assert process.wait() == 0
