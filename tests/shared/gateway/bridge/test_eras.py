"""What one era has no word for: it is refused by name, and the rest of the session goes on."""

import pytest

from shared.errors import PeerError
from shared.protocol.types.resources import Resource
from shared.server.context import Context
from tests.shared.gateway.bridge.telling import MODES, Telling
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, talking

WITHOUT_A_WORD = [
    (STATELESS, "ping", {}),
    (STATELESS, "initialize", {}),
    (STATELESS, "logging/setLevel", {"level": "error"}),
    (STATELESS, "resources/subscribe", {"uri": "memo://one"}),
    (STATELESS, "resources/unsubscribe", {"uri": "memo://one"}),
    (STATELESS, "tasks/list", {}),
    (NEWEST_HANDSHAKE, "server/discover", {}),
    (NEWEST_HANDSHAKE, "subscriptions/listen", {"notifications": {}}),
    (NEWEST_HANDSHAKE, "tasks/list", {}),
    (NEWEST_HANDSHAKE, "tasks/get", {"taskId": "1"}),
]
QUESTION = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 9}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("version", "method", "params"), WITHOUT_A_WORD)
async def test_a_method_of_the_other_era_is_refused_by_name(
    mode: str, version: str, method: str, params: dict[str, object]
) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, version) as peer:
        error = (await peer.request(method, params))["error"]
        assert (error["code"], method in error["message"]) == (-32601, True)
        assert await peer.text("add", a=1, b=2) == "3"


async def test_a_log_message_of_no_call_has_no_word_without_sessions() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running, STATELESS) as peer:
        await telling.heard_by_all()
        for link in telling.links():
            link.session.tell("notifications/message", {"level": "error", "data": "of no call"})
            link.soon()
        await peer.call("add", a=1, b=2)
        assert peer.others == []


@pytest.mark.parametrize(("version", "refused"), [(NEWEST_HANDSHAKE, False), (STATELESS, True)])
async def test_a_question_about_a_list_has_no_word_without_sessions(version: str, refused: bool) -> None:
    telling = Telling("handshake")
    heard: list[str] = []

    async def ask(ctx: Context[None]) -> list[Resource]:
        try:
            heard.append((await ctx.sample("thought", QUESTION)).text)
        except PeerError as error:
            heard.append(str(error))
        return []

    telling.app.lists_resources(ask)
    async with telling.bridged() as running, talking(running, version, {"sampling": {}}) as peer:
        id_ = await peer.begin("resources/list")
        if not refused:
            asked = await peer.other("sampling/createMessage")
            answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "so"}}
            await peer.reply(asked["id"], answer)
        assert "result" in await peer.answer(id_)
        assert heard == (["the client refused sampling/createMessage"] if refused else ["so"])
