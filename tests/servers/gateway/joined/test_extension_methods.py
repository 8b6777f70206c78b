"""Custom methods: each is forwarded to the member that has it."""

from typing import Any

from pydantic import BaseModel

from shared import Context
from shared.protocol.methods import Method
from shared.protocol.types.tools import InputParams
from shared.server.extension import Extension
from tests.servers.gateway.joined.members import Door, joined, small, vendors, with_tools
from tests.shared.server.peer import STATELESS, talking


async def test_a_custom_method_is_forwarded_to_its_member() -> None:
    server = small("b")

    @server.method("example/own")
    async def own(_ctx: Context[Any], _params: Any) -> dict[str, Any]:
        return {"own": "b"}

    async with joined(with_tools("a", "a_tool"), Door("b", server)) as running, talking(running) as peer:
        assert (await vendors(peer, "example/own"))["result"]["own"] == "b"
        assert (await peer.request("example/other"))["error"]["code"] == -32601


async def test_a_custom_method_of_a_late_member_is_available_to_earlier_clients() -> None:
    server = small("b")

    @server.method("example/own")
    async def own(_ctx: Context[Any], _params: Any) -> dict[str, Any]:
        return {"own": "b"}

    late = Door("b", server)
    async with joined(with_tools("a", "a_tool"), closed=(late,)) as running, talking(running) as peer:
        error = (await peer.request("example/own"))["error"]
        assert error["message"] == "method not found: example/own; not available at the moment: b"
        await late.open()
        assert (await vendors(peer, "example/own"))["result"]["own"] == "b"


async def test_a_custom_method_may_ask_in_rounds() -> None:
    class Name(BaseModel):
        name: str

    async def greet(_running: Any, context: Context[Any], _params: Any) -> dict[str, Any]:
        answer = await context.ask("who", "Who?", Name)
        return {"greets": answer.data.name if answer.data is not None else None}

    row = Method("example/greet", InputParams, multi_round=True)
    door = Door("a", small("a", extensions=[Extension("greet", methods=[row], handlers={row.name: greet})]))
    async with joined(door) as running, talking(running, STATELESS, {"elicitation": {}}) as peer:
        state = (await vendors(peer, "example/greet"))["result"]["requestState"]
        brought = {"who": {"action": "accept", "content": {"name": "Ann"}}}
        again = {"inputResponses": brought, "requestState": state}
        assert (await vendors(peer, "example/greet", again))["result"]["greets"] == "Ann"
