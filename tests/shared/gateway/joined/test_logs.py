"""Log lines of joined servers: whose work a call is, they say."""

import logging

from shared.ops.logs import server_name
from tests.shared.gateway.joined.members import Door, joined, small
from tests.shared.server.peer import talking


async def test_they_name_the_server_that_a_call_went_to() -> None:
    named = list[tuple[str, str | None]]()

    class Names(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            named.append((record.getMessage(), server_name.get()))

    doors = []
    for name in ("a", "b"):
        server = small(name)

        @server.tool(name=f"fail_{name}")
        async def fail() -> str:
            """Fail."""
            raise RuntimeError("a secret detail")

        doors.append(Door(name, server))
    handler = Names()
    logging.getLogger("shared.server").addHandler(handler)
    try:
        async with joined(*doors) as running, talking(running) as peer:
            for name in ("fail_a", "fail_b"):
                assert (await peer.call(name))["error"]["message"] == "internal error"
    finally:
        logging.getLogger("shared.server").removeHandler(handler)
    assert named == [("a handler failed", "a"), ("a handler failed", "b")]
    assert server_name.get() is None
