"""Tasks of 2025-11-25 over HTTP: whose they are, what streams carry them, and what outlives those."""

from shared.protocol.types.tasks import RELATED_TASK
from tests.shared.extensions.tasks.app import ACCEPTED, app
from tests.shared.transports.http.http_wire import Json, Site, events, merged, served

ASKED: Json = {"elicitation": {"form": {}}}


def bearing(token: str) -> Json:
    return {"Authorization": f"Bearer {token}"}


async def request(site: Site, session: Json, method: str, **params: object) -> Json:
    """The answer to a request, which is no stream."""
    answer = await site.post(site.message(method, params), session)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    found: Json = answer.json()
    return found


async def begin(site: Site, session: Json, tool: str) -> str:
    """The id of a new task."""
    id_: str = (await request(site, session, "tools/call", name=tool, task={}))["result"]["task"]["taskId"]
    return id_


async def reply(site: Site, session: Json, asked: Json) -> None:
    answer = await site.post({"jsonrpc": "2.0", "id": asked["id"], "result": ACCEPTED}, session)
    assert answer.status_code == 202


async def status(site: Site, session: Json, id: str) -> str:
    found: str = (await request(site, session, "tasks/get", taskId=id))["result"]["status"]
    return found


async def test_a_question_comes_on_the_stream_of_who_waits() -> None:
    async with served(app()) as site:
        session = await site.initialize(capabilities=ASKED)
        id_ = await begin(site, session, "ask")
        async with site.stream(site.message("tasks/result", {"taskId": id_}), session) as response:
            said = [event async for event in answering(site, session, response)]
        assert [one.get("method") for one in said] == ["elicitation/create"] * 4 + [None]
        assert {one["params"]["_meta"][RELATED_TASK]["taskId"] for one in said[:-1]} == {id_}
        assert said[-1]["result"]["_meta"] == {RELATED_TASK: {"taskId": id_}}


async def answering(site: Site, session: Json, response):
    """What comes on a stream; what it asks is answered."""
    async for event in events(response):
        if "id" in event and "method" in event:
            await reply(site, session, event)
        if event.get("method") != "notifications/tasks/status":
            yield event


async def test_a_question_whose_stream_is_lost_is_put_in_another_session() -> None:
    async with served(app()) as site:
        first = await site.initialize(capabilities=ASKED)
        id_ = await begin(site, first, "ask")
        waiting = site.message("tasks/result", {"taskId": id_})
        async with site.stream(waiting, first) as response:
            lost = [event async for event in _until_asked(response)]
        second = await site.initialize(capabilities=ASKED)
        async with site.stream(site.message("tasks/result", {"taskId": id_}), second) as response:
            said = [event async for event in answering(site, second, response)]
        assert said[0]["params"]["message"] == lost[-1]["params"]["message"]
        assert said[-1]["result"]["content"][0]["text"] == "accept, accept, accept, accept"


async def _until_asked(response):
    async for event in events(response):
        yield event
        if event.get("method") == "elicitation/create":
            return


async def test_a_task_outlives_its_session() -> None:
    async with served(app()) as site:
        first = await site.initialize()
        id_ = await begin(site, first, "wait")
        await site.client.delete("/mcp", headers=merged(first))
        second = await site.initialize()
        assert await status(site, second, id_) == "working"
        site.running.state.opened.set()
        result = (await request(site, second, "tasks/result", taskId=id_))["result"]
        assert result["content"] == [{"type": "text", "text": "done"}]


async def test_a_stream_of_the_session_tells_how_a_task_is() -> None:
    async with served(app()) as site:
        session = await site.initialize()
        async with site.client.stream("GET", "/mcp", headers=merged(session)) as response:
            id_ = await begin(site, session, "wait")
            site.running.state.opened.set()
            told = await anext(events(response))
        assert (told["method"], told["params"]["taskId"]) == ("notifications/tasks/status", id_)


async def test_a_task_belongs_to_who_has_the_token() -> None:
    async with served(app(), tokens=("one", "two")) as site:
        hers = await site.initialize(headers=bearing("one"))
        his = await site.initialize(headers=bearing("two"))
        id_ = await begin(site, hers, "wait")
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert (await request(site, his, method, taskId=id_))["error"]["code"] == -32602
        assert (await request(site, his, "tasks/list"))["result"] == {"tasks": []}
        assert [one["taskId"] for one in (await request(site, hers, "tasks/list"))["result"]["tasks"]] == [id_]
