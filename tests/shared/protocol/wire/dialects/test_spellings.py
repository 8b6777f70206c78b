"""What a client takes in other words than those of the specification, without I/O."""

from typing import Any

import pytest

from shared.protocol.session.client import ClientIdentity, ClientSession
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.session.events import Answered
from shared.protocol.versions import NEWEST_HANDSHAKE
from shared.protocol.wire.dialects.spellings import server_info, standard_method
from shared.protocol.wire.jsonrpc import Failure, Notification, Request, Response

CALLED = {"name": "my-mcp-server", "version": "1.0.0"}


def session() -> ClientSession:
    """One that declares forms."""
    return ClientSession(
        ClientIdentity({"name": "test", "version": "1"}, {"elicitation": {"form": {}}}), NEWEST_HANDSHAKE
    )


def test_questions_of_003_are_those_of_the_specification() -> None:
    standards = {"sampling/complete": "sampling/createMessage", "elicitation/request": "elicitation/create"}
    for spelling, standard in {**standards, "roots/list": "roots/list"}.items():
        assert standard_method(spelling) == standard
        assert session().receive(Request("q", spelling)) == [ServerRequest("q", standard, {})]


def test_a_form_in_the_words_of_003_keeps_to_the_modes_that_were_declared() -> None:
    made = session()
    assert made.receive(Request("q", "elicitation/request", {"mode": "url"})) == []
    (refused,) = made.outgoing()
    assert isinstance(refused.message, Failure)
    assert (refused.message.id, refused.message.code) == ("q", -32602)


@pytest.mark.parametrize(
    ("result", "info"),
    [
        ({"implementation": CALLED}, CALLED),
        ({"serverInfo": {"name": "shown"}, "implementation": CALLED}, {"name": "shown"}),
        ({}, None),
    ],
)
def test_implementation_stands_in_for_server_info(result: dict[str, Any], info: object) -> None:
    assert server_info(result) == info
    made = session()
    assert made.handle_initialize({"protocolVersion": "2024-11-05", **result})
    assert made.server is not None
    assert made.server.info == (info or {})


def test_a_title_in_a_change_and_in_contents_reaches_the_user() -> None:
    made = session()
    change = {"uri": "file:///main.rs", "title": "Main File"}
    assert made.receive(Notification("notifications/resources/updated", change)) == [
        Notified("notifications/resources/updated", change)
    ]
    read = Response(made.request("resources/read", {}), {"contents": [{**change, "name": "main.rs", "text": ""}]})
    assert made.receive(read) == [Answered(read.id, read)]


def test_32000_is_an_error_like_any_other() -> None:
    made = session()
    refused = Failure(made.request("tools/list", {}), -32000, "Server error")
    assert made.receive(refused) == [Answered(refused.id, refused)]
