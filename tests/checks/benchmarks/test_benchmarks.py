"""What `make bench` makes of its samples: medians, ratios, verdicts, and the comparison of two runs."""

import asyncio
import json
import os
import selectors
import socket
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.checks.benchmarks import (
    client_load,
    client_raw,
    compare,
    floor_answers,
    machine,
    messages,
    pipes,
    targets,
    web,
    wrk,
)
from tests.checks.benchmarks.report import figure, table
from tests.checks.benchmarks.results import Results
from tests.checks.benchmarks.run import SERIES
from tests.npm import Unavailable

START, PING = targets.START.name, targets.PING_SINGLE.name
MACHINE = {"cores": 2, "memory, GiB": 4.0, "system": "Linux", "versions": {"Python": "3.11"}}


def results(**samples: dict[str, list[float]]) -> Results:
    names = {"start": START, "ping": PING, "idle": targets.IDLE.name}
    return Results("today", 3, MACHINE, {names[key]: servers for key, servers in samples.items()})


def row_of(text: str, name: str) -> list[str]:
    [line] = [line for line in text.splitlines() if line.startswith(f"| {name} ")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_ratio_is_the_median_of_the_ratios_of_each_round() -> None:
    found = results(start={"ours": [1.0, 2.0, 30.0], "SDK": [2.0, 10.0, 40.0]})
    assert found.median(START, "ours") == 2.0
    assert found.spread(START, "ours") == (1.0, 30.0)
    assert found.ratio(START, "ours", "SDK") == 0.5


def test_what_was_not_measured_is_none() -> None:
    found = results(start={"ours": [1.0]})
    assert found.median(START, "npm") is None
    assert found.spread(START, "npm") is None
    assert found.ratio(START, "ours", "npm") is None


@pytest.mark.parametrize(("npm", "required", "goal"), [([100.0], "yes", "no"), ([50.0], "no", "no"), ([], "?", "no")])
def test_less_is_better_for_a_start(npm: list[float], required: str, goal: str) -> None:
    found = results(start={"ours": [35.0], "SDK": [100.0], "npm": npm})
    cells = row_of(table(found), START)
    assert (cells[-3], cells[-1]) == (required, goal)


def test_more_is_better_for_a_rate() -> None:
    found = results(ping={"ours": [450.0], "SDK": [100.0], "floor": [1_000.0]})
    cells = row_of(table(found), PING)
    assert cells[2:] == [
        *("450", "450–450", "100", "–", "1,000", "4.50", "–", "0.45"),
        *(">= 4 x SDK", "yes", ">= 0.5 x floor", "no"),
    ]


def test_a_bound_may_be_a_figure() -> None:
    cells = row_of(table(results(idle={"ours": [13.0, 11.5]})), targets.IDLE.name)
    assert cells[-4:] == ["<= 12 MiB", "no", "–", "–"]


def test_the_table_says_why_a_server_was_not_measured() -> None:
    found = results(start={"ours": [1.0]})
    found.excuse(START, "npm", "there is no Node")
    text = table(found)
    assert row_of(text, START)[5] == "not measured"
    assert "Not measured for npm: there is no Node." in text


@pytest.mark.parametrize(
    ("value", "text"), [(0.1234, "0.12"), (12.34, "12.3"), (123.4, "123"), (1234.5, "1,234"), (-12.34, "-12.3")]
)
def test_figures_are_short(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    found = results(start={"ours": [1.0, 2.0]})
    found.excuse(PING, "npm", "there is no Node")
    found.save(tmp_path / "a.json")
    assert Results.load(tmp_path / "a.json") == found


def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(SystemExit, match="2"):
        compare.main([str(tmp_path / "a.json"), str(tmp_path / "missing.json")])
    assert "holds no results" in capsys.readouterr().err


def test_two_runs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "before.json", tmp_path / "after.json"]
    results(start={"ours": [10.0, 20.0], "SDK": [50.0]}, ping={"ours": [10.0]}).save(files[0])
    results(start={"ours": [12.0, 12.0], "SDK": [25.0]}, idle={"ours": [5.0]}).save(files[1])
    assert compare.main([str(file) for file in files]) == 0
    said = capsys.readouterr().out
    assert row_of(said, START) == [START, "ms", "15.0", "12.0", "-20.0%", "yes", "-50.0%"]
    assert f"Only in the first: {PING}." in said
    assert f"Only in the second: {targets.IDLE.name}." in said


def test_spreads_that_do_not_meet_do_not_overlap() -> None:
    one, two = results(start={"ours": [1.0, 2.0]}), results(start={"ours": [2.5, 3.0]})
    assert not compare.overlap(one, two, START)
    assert not compare.overlap(two, one, START)
    assert compare.overlap(one, one, START)


def test_every_row_is_measured_by_one_series() -> None:
    assert tuple(row for series in SERIES for row in series.rows) == targets.MEASURES
    assert len({row.name for row in targets.MEASURES}) == len(targets.MEASURES)


# The client


def test_requests_differ_by_their_ids_alone() -> None:
    one, two = messages.PING.lines([7, 8])
    assert one.replace(b"7", b"8") == two
    assert floor_answers.answer_to(one) == b'{"jsonrpc": "2.0", "id": 7, "result": {}}'
    assert floor_answers.answer_to(messages.INITIALIZED) is None


def test_a_run_is_made_longer_until_it_tells_something() -> None:
    counts = []

    def run(count: int) -> float:
        counts.append(count)
        return 10_000.0

    assert pipes.sample(run) == 10_000.0
    assert counts == [20, 1_000, 5_000]


def test_the_client_drives_the_floor(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_text(messages.TEXT)
    with pipes.Pipes([sys.executable, "-m", "tests.checks.benchmarks.floor_stdio"]) as server:
        server.greet()
        assert server.one_at_a_time(messages.read(file), 5) > 0
        assert server.pipelined(messages.LIST, 200) > 0
        assert server.at_once(messages.LIST, 8, 100) > 0
        assert machine.resident(server.pid) > 1


def job() -> client_load.Job:
    return client_load.Job("http://127.0.0.1", os.getpid(), "echo", {}, "pong")


def test_a_client_tells_how_often_it_could_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def call() -> str:
        return "pong"

    monkeypatch.setattr(client_load, "SECONDS", 0.001)
    asyncio.run(client_load.tell(job(), call))
    one, many = json.loads(capsys.readouterr().out)
    assert min(one, many) > 0


def test_a_wrong_answer_to_a_client_is_no_figure() -> None:
    async def call() -> str:
        return "ping"

    with pytest.raises(ValueError, match="answered by 'ping'"):
        asyncio.run(client_load.tell(job(), call))


def test_connections_take_what_is_left_to_ask() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answerer = threading.Thread(target=_answer_each, args=(listener, 2))
        answerer.start()
        rate = client_raw._rate(listener.getsockname()[1], messages.PING.text, messages.PING, 2, 7)
        answerer.join()
    assert rate > 0


def _answer_each(listener: socket.socket, connections: int) -> None:
    """Answers whatever is read from so many connections, until they are closed."""
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(connections):
            selector.register(stack.enter_context(listener.accept()[0]), selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                if key.fileobj.recv(65_536):
                    key.fileobj.send(b'{"result":{}}')
                else:
                    selector.unregister(key.fileobj)


def test_an_answer_that_is_not_as_expected_is_reported() -> None:
    wrong = messages.Ask("ping", {}, b"pong")
    with (
        pipes.Pipes([sys.executable, "-m", "tests.checks.benchmarks.floor_stdio"]) as server,
        pytest.raises(ValueError, match="ping: 1 answers to 1 requests"),
    ):
        server.one_at_a_time(wrong, 1)


def test_a_server_that_ends_is_reported_with_its_last_words() -> None:
    with (
        pipes.Pipes([sys.executable, "-c", "input(); raise SystemExit('I give up')"]) as server,
        pytest.raises(EOFError, match="the server said I give up"),
    ):
        server.greet()


@pytest.mark.parametrize("figures", ["0 1000000 0 0", "9 1000000 9000 1", "9 1000000 90 0"])
def test_a_load_that_failed_is_no_figure(figures: str) -> None:
    with pytest.raises(ValueError, match="the load failed"):
        wrk._rate(f"\nbench {figures}\n", 100)


def test_a_load_needs_wrk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unavailable, match="wrk is not installed"):
        wrk.find_wrk()


def test_the_headers_of_each_session_take_turns() -> None:
    server = web.Web([sys.executable, "-c", ""], 1)
    script = wrk._script(server, messages.PING, [web.in_session("one"), web.in_session("two")], 5)
    server.__exit__()
    assert [f"Mcp-Session-Id: {session}" in script for session in ("one", "two")] == [True, True]
    assert "id = id + 1" in script


def test_a_load_is_answers_by_time() -> None:
    assert wrk._rate("\nbench 300 2000000 90000 0\n", 100) == 150.0
