"""Spellings of document 003 that a client accepts, without I/O."""

from typing import Any

import pytest

from shared.protocol.session.client import ClientSession
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.session.descriptions import ClientIdentity
from shared.protocol.session.events import Answered
from shared.protocol.versions import NEWEST_HANDSHAKE
from shared.protocol.wire.dialects.spellings import server_info, standard_method
from shared.protocol.wire.jsonrpc import Failure, Notification, Request, Response

CALLED = {"name": "my-mcp-server", "version": "1.0.0"}


def session() -> ClientSession:
    """Makes a session that declares elicitation by forms."""
    return ClientSession(
        ClientIdentity({"name": "test", "version": "1"}, {"elicitation": {"form": {}}}), NEWEST_HANDSHAKE
    )


def test_questions_of_document_003_become_those_of_the_specification() -> None:
    standards = {"sampling/complete": "sampling/createMessage", "elicitation/request": "elicitation/create"}
    for spelling, standard in {**standards, "roots/list": "roots/list"}.items():
        assert standard_method(spelling) == standard
        assert session().receive(Request("q", spelling)) == [ServerRequest("q", standard, {})]


def test_undeclared_elicitation_modes_of_document_003_are_refused() -> None:
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
def test_implementation_is_read_where_server_info_is_missing(result: dict[str, Any], info: object) -> None:
    assert server_info(result) == info
    made = session()
    assert made.handle_initialize({"protocolVersion": "2024-11-05", **result})
    assert made.server is not None
    assert made.server.info == (info or {})


def test_titles_in_updates_and_contents_are_passed_on() -> None:
    made = session()
    change = {"uri": "file:///main.rs", "title": "Main File"}
    assert made.receive(Notification("notifications/resources/updated", change)) == [
        Notified("notifications/resources/updated", change)
    ]
    read = Response(made.request("resources/read", {}), {"contents": [{**change, "name": "main.rs", "text": ""}]})
    assert made.receive(read) == [Answered(read.id, read)]


def test_code_32000_is_passed_on_as_an_error() -> None:
    made = session()
    refused = Failure(made.request("tools/list", {}), -32000, "Server error")
    assert made.receive(refused) == [Answered(refused.id, refused)]
