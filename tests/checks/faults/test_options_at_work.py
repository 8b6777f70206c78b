"""What the options of every server do to a server: limits, the trace, the log."""

import json
import resource
import signal
import stat
from pathlib import Path

from tests.checks.faults.raw import FILES, SLOW, Raw, call


def test_limits_arrive_where_they_count(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).write_text("x" * 9_000)
    limits = ["--max-result", "6000", "--max-entries", "3"]
    with Raw([*FILES, *limits, str(tmp_path)]).open() as server:
        server.send(call(1, "list_directory", path="."))
        assert server.answer(1)["result"]["content"][0]["text"].count("[FILE] ") == 3
        server.send(call(2, "read_text_file", path="0"))
        assert len(json.dumps(server.answer(2))) < 6_500
    with Raw([*SLOW, "--max-seconds", "0.1"]).open() as server:
        server.send(call(1, "hold"))
        result = server.answer(1)["result"]
        assert result["isError"]
        assert "0.1 s" in result["content"][0]["text"]


def test_the_trace_holds_every_message_and_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.touch(0o644)
    with Raw([*SLOW, "--trace", str(path), "--drain", "1"]).open() as server:
        secret = {**call(1, "echo", text="Authorization: Bearer hunter2hunter2"), "password": "hunter2"}
        secret["params"]["_meta"] = {"x/apiKey": "hunter2", "progressToken": "shown"}
        server.send(secret)
        server.send_bytes(b"{hunter2\n")
        server.send(call(2, "hold"))
        server.answer(1)
        server.begun()
        server.close_stdin()
        server.rest()
        assert server.wait() == 0
    traced = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = [next(kind for kind in line if kind != "time") for line in traced]
    assert sorted(set(kinds)) == ["received", "refused", "sent"]
    methods = [line["received"]["method"] for line in traced if "received" in line]
    assert methods == ["initialize", "notifications/initialized", "tools/call", "tools/call"]
    assert "hunter2" not in path.read_text()
    assert "shown" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_trace_that_can_not_grow_ends_and_nothing_else(tmp_path: Path) -> None:
    with Raw([*SLOW, "--trace", str(tmp_path / "trace")]).open() as server:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (4_000, 4_000))
        for id_ in range(20):
            server.send(call(id_, "echo", text="x" * 500))
            assert "result" in server.answer(id_)
        server.close_stdin()
        assert server.wait() == 0
        assert server.stderr().count("the trace ends here") == 1


def test_json_log_lines_parse() -> None:
    with Raw([*SLOW, "--log-format", "json", "--log-level", "debug"]).open() as server:
        server.send(call(1, "fail"), call(2, "shout", lines=2))
        server.answer(2)
        server.process.send_signal(signal.SIGTERM)
        server.rest()
        assert server.wait() == 0
        logged = [json.loads(line) for line in server.stderr().splitlines()]
    assert any("a secret detail" in line.get("exception", "") for line in logged)
    assert {line["level"] for line in logged} >= {"error", "warning", "info"}
    assert any(line["message"] == "SIGTERM: ending" for line in logged)
