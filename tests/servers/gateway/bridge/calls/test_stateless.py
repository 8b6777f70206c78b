"""A stateless server behind a bridge: one connection for the clients of both eras."""

import anyio
import pytest

from servers.everything.server import app as everything
from shared.errors import InputRequired
from shared.server.dispatch.context import Context
from tests.servers.gateway.bridge.asking import named
from tests.servers.gateway.bridge.recording import Recording
from tests.servers.gateway.bridge.telling import until
from tests.servers.gateway.bridge.upstreams import NEW, Behind, bridged, opened
from tests.shared.client.small import Small, text_of
from tests.shared.server.peer import ERAS, Json, talking
from tests.wire import NEWEST_HANDSHAKE, STATELESS

FORMS: Json = {"elicitation": {"form": {}, "url": {}}}
CLIENTS = pytest.mark.parametrize("version", ERAS)


async def test_a_request_state_is_refused_for_another_request() -> None:
    async with bridged(Behind(Small().app, NEW), STATELESS, FORMS) as peer:
        first = (await peer.call("greet"))["result"]
        again = {"requestState": first["requestState"], "inputResponses": {"first": named("Ada")}}
        refused = await peer.request("tools/call", {"name": "roots", "arguments": {}, **again})
        assert refused["error"]["message"] == "this requestState belongs to another request"


async def test_all_questions_of_a_round_are_asked_concurrently() -> None:
    capabilities: Json = {**FORMS, "sampling": {}, "roots": {}}
    async with bridged(Behind(everything, NEW), NEWEST_HANDSHAKE, capabilities) as peer:
        call = await peer.start("test_input_required_result_multiple_inputs")
        asked = {method: await peer.other(method) for method in ("elicitation/create", "sampling/createMessage")}
        said = {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"}
        await peer.reply((await peer.other("roots/list"))["id"], {"roots": []})
        await peer.reply(asked["sampling/createMessage"]["id"], said)
        await peer.reply(asked["elicitation/create"]["id"], named("Ada"))
        assert text_of((await peer.answer(call))["result"]) == "Hello Ada, with 0 roots"


async def test_a_visit_has_an_id_only_for_a_client_with_a_session() -> None:
    async with bridged(Behind(everything, NEW), STATELESS, FORMS) as peer:
        (question,) = (await peer.call("elicit_visit"))["result"]["inputRequests"].values()
        assert "elicitationId" not in question["params"]
    async with bridged(Behind(everything, NEW), NEWEST_HANDSHAKE, FORMS) as peer:
        call = await peer.start("elicit_visit")
        question = await peer.other("elicitation/create")
        assert question["params"]["elicitationId"]
        await peer.reply(question["id"], {"action": "accept"})
        assert text_of((await peer.answer(call))["result"]) == "The user has opened the page."


async def test_a_refusal_by_a_client_with_a_session_ends_its_call() -> None:
    async with bridged(Behind(Small().app, NEW), NEWEST_HANDSHAKE, FORMS) as peer:
        call = await peer.start("greet")
        question = await peer.other("elicitation/create")
        error = {"code": -1, "message": "the user does not want that"}
        await peer.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
        assert (await peer.answer(call))["error"]["message"] == "the user does not want that"


async def test_a_client_is_not_asked_what_it_did_not_declare() -> None:
    async with bridged(Behind(Small().app, NEW), NEWEST_HANDSHAKE) as peer:
        error = (await peer.call("greet"))["error"]
        assert error["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}


async def test_a_server_that_asks_endlessly_fails_the_call() -> None:
    async def ask(_context: Context[None]) -> Json:
        raise InputRequired({"again": {"method": "roots/list", "params": {}}})

    behind = Recording()
    behind.answers["tools/call"] = ask
    async with bridged(Behind(behind.app, NEW), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        call = await peer.start("any")
        for _ in range(9):
            await peer.reply((await peer.other("roots/list"))["id"], {"roots": []})
        answer = await peer.answer(call)
        assert "was not completed within 10 rounds" in answer["error"]["message"]


async def test_all_clients_share_one_connection() -> None:
    behind = Behind(Small().app, NEW)
    async with opened(behind) as running, talking(running) as ada, talking(running, STATELESS) as bob:
        assert [await peer.text("add", a=1, b=2) for peer in (ada, bob)] == ["3", "3"]
        assert len(behind.lines) == 1


class Chatty(Small):
    """Logs during a call without naming the call, as on a pipe."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = anyio.Event()
        self.app.tool()(self.chat)

    async def chat(self, ctx: Context[None], name: str) -> str:
        """Log a name, and wait."""
        params = {"level": "info", "data": name}
        ctx.link.session.notify(ctx.call, "notifications/message", params)
        ctx.link.send_soon()
        await self.go_on.wait()
        return name


async def test_a_log_message_on_a_pipe_reaches_the_only_client_with_calls() -> None:
    chatty = Chatty()
    behind = Behind(chatty.app, NEW)
    async with opened(behind) as running, talking(running) as ada, talking(running) as bob:
        call = await bob.start("chat", name="one")
        assert (await bob.other("notifications/message"))["params"] == {"level": "info", "data": "one"}
        waiting = await ada.start("wait")
        await chatty.started.wait()
        another = await bob.start("chat", name="Bob's secret")
        await until(lambda: len(behind.running.calls) == 3)
        chatty.go_on.set()
        for one in (call, another):
            await bob.answer(one)
        await ada.cancel(waiting)
        await ada.request("ping")
        assert [one for one in (*ada.others, *bob.others) if one["method"] == "notifications/message"] == []
