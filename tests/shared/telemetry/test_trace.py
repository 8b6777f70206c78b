"""The trace: every message as a JSON line, without secrets, for its owner only."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from shared.protocol.session.events import Outgoing
from shared.protocol.wire.codec import decode
from shared.protocol.wire.jsonrpc import Batch, Message, Notification, Request, Response
from shared.telemetry.trace import MAX_TEXT, Trace, redact

SECRETS = [
    "token",
    "accessToken",
    "access_token",
    "tokens",
    "client_secret",
    "password",
    "passphrase",
    "Authorization",
]
SECRETS += ["apiKey", "API_KEY", "api-key", "private_key", "Cookie", "Set-Cookie", "credentials"]
HARMLESS = ["progressToken", "maxTokens", "text", "path", "key", "passed", "author"]


def test_values_of_secret_names_are_redacted() -> None:
    for key in SECRETS:
        assert redact({"a": [{key: {"deep": "x"}}], key: "y"}) == {"a": [{key: "[redacted]"}], key: "[redacted]"}


def test_lines_of_a_trace_name_their_server(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "trace")
    for server in ("one", "two"):
        trace.for_server(server).on_received(Request(1, "ping"))
    trace.on_received(Request(1, "ping"))
    trace.close()
    lines = [json.loads(line) for line in (tmp_path / "trace").read_text().splitlines()]
    assert [line.get("server") for line in lines] == ["one", "two", None]


def test_values_of_harmless_names_are_kept() -> None:
    for key in HARMLESS:
        assert redact({key: "x", "n": [1, True, None]}) == {key: "x", "n": [1, True, None]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("curl -H 'Authorization: Bearer abc.def-123'", "curl -H 'Authorization: Bearer [redacted]'"),
        ("bearer 0123456789abcdef==", "bearer [redacted]"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted]"),
        ("https://me:hunter2@example.org/x@y", "https://me:[redacted]@example.org/x@y"),
        ("https://example.org/a:b@c and bearer of", "https://example.org/a:b@c and bearer of"),
    ],
)
def test_texts_that_look_like_secrets_are_redacted(text: str, shown: str) -> None:
    assert redact([text]) == [shown]


def traced(path: Path, *messages: tuple[str, Message]) -> list[dict[str, Any]]:
    trace = Trace(path)
    for direction, message in messages:
        if direction == "received":
            trace.on_received(message)
        else:
            trace.on_sent([Outgoing(message)])
    trace.close()
    trace.on_sent([Outgoing(Notification("late"))])
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_message_writes_a_line(tmp_path: Path) -> None:
    first, second = traced(
        tmp_path / "trace", ("received", Request(1, "ping")), ("sent", Response(1, {"password": "x", "n": "\ud800"}))
    )
    assert first["received"] == {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}
    assert second["sent"]["result"] == {"password": "[redacted]", "n": "\ufffd"}
    assert first["time"] <= second["time"]


def test_a_line_of_an_invalid_message_has_its_error(tmp_path: Path) -> None:
    (line,) = traced(tmp_path / "trace", ("received", decode(b"{")))
    assert line["refused"]["error"]["code"] == -32700
    assert "received" not in line


def test_a_too_deeply_nested_message_does_not_end_the_trace(tmp_path: Path) -> None:
    value: dict[str, Any] = {}
    for _ in range(2_000):
        value = {"in": value}
    first, second = traced(tmp_path / "trace", ("sent", Response(1, value)), ("sent", Response(2, {})))
    assert isinstance(first["sent"], str)
    assert second["sent"]["id"] == 2


def test_many_values_are_truncated_with_a_count() -> None:
    shown = redact({"rows": list(range(20_000)), "more": 1, "password": "x"})
    assert shown["rows"][:-1] == list(range(len(shown["rows"]) - 1))
    assert shown["rows"][-1] == f"[{20_001 - len(shown['rows'])} left out]"
    assert 1_900 < len(shown["rows"]) < 2_001
    assert list(shown) == ["rows", "[2 left out]"]


def test_a_long_text_is_redacted_and_truncated() -> None:
    first = "x" * (MAX_TEXT - 12) + " bearer "
    (shown,) = redact([f"{first}0123456789 and more"])
    assert shown == f"{first}[red[15 characters left out]"


def test_a_line_of_a_long_message_is_truncated(tmp_path: Path) -> None:
    many = Batch(tuple(Response(number, {"rows": list(range(1_000))}) for number in range(100)))
    (line,) = traced(tmp_path / "trace", ("sent", many))
    assert len(line["sent"]) < 15
    assert line["sent"][0]["result"] == {"rows": list(range(1_000))}
    assert line["sent"][-1].endswith(" left out]")


def test_an_existing_file_is_extended_and_made_private(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("{}\n")
    path.chmod(0o644)
    assert len(traced(path, ("sent", Notification("x")))) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_is_private_with_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        traced(tmp_path / "trace")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "trace").stat().st_mode) == 0o600


def test_a_path_that_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "no" / "such"):
        with pytest.raises(OSError):
            Trace(path)
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(ValueError, match="is not a regular file"):
            Trace(path)
    os.close(reader)
