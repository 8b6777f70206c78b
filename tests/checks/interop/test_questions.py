"""Our server asks the official client: a form, a page to visit, its model, its roots.

The same tool asks by a request in the handshake era, and by ending the call with `input_required` after it.
"""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult, ErrorData, InputRequiredResult

from .peers import Case

MODERN = pytest.mark.parametrize("mode", ["auto"])


class Answers:
    """Answers elicitations by their message, and keeps what was asked."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.asked: list[Any] = []
        self._answers = answers

    async def __call__(self, _context: Any, params: Any) -> ElicitResult | ErrorData:
        self.asked.append(params)
        answer = self._answers[params.message]
        return (
            answer if isinstance(answer, ElicitResult | ErrorData) else ElicitResult(action="accept", content=answer)
        )


async def text_of(case: Case, tool: str, arguments: dict[str, Any] | None = None, **callbacks: Callable) -> str:
    async with case.connect("bench", **callbacks) as client:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result
        return result.content[0].text


async def test_form_has_a_schema(case: Case) -> None:
    answers = Answers({"Where to?": {"city": "Oslo"}})
    await text_of(case, "book", elicitation_callback=answers)
    (asked,) = answers.asked
    assert isinstance(asked, ElicitRequestFormParams)
    assert asked.requested_schema["required"] == ["city"]
    assert asked.requested_schema["properties"]["season"]["enum"] == ["summer", "winter"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_form_is_declined_or_cancelled(case: Case, action: str) -> None:
    answers = Answers({"Where to?": ElicitResult(action=action)})
    assert await text_of(case, "book", elicitation_callback=answers) == action


@MODERN
async def test_rounds_are_driven_by_hand(case: Case) -> None:
    """The client may keep the state and go on later."""
    async with case.connect("bench", elicitation_callback=Answers({})) as client:
        first = await client.session.call_tool("introduce", allow_input_required=True)
        assert isinstance(first, InputRequiredResult)
        assert list(first.input_requests) == ["name"]
        second = await client.session.call_tool(
            "introduce",
            input_responses={"name": ElicitResult(action="accept", content={"name": "Ada"})},
            request_state=first.request_state,
            allow_input_required=True,
        )
        assert list(second.input_requests) == ["age"]
        last = await client.session.call_tool(
            "introduce",
            input_responses={"age": ElicitResult(action="accept", content={"age": 36})},
            request_state=second.request_state,
            allow_input_required=True,
        )
    assert last.content[0].text == "Ada, 36"


@MODERN
async def test_state_of_another_call_is_refused(case: Case) -> None:
    async with case.connect("bench", elicitation_callback=Answers({})) as client:
        first = await client.session.call_tool("introduce", allow_input_required=True)
        with pytest.raises(MCPError, match="belongs to another request") as caught:
            await client.session.call_tool("book", request_state=first.request_state)
    assert caught.value.code == -32602


async def test_client_without_forms_is_not_asked(case: Case) -> None:
    async with case.connect("bench") as client:
        with pytest.raises(MCPError, match=r"did not declare .*: elicitation") as caught:
            await client.call_tool("book")
    if not case.handshake:
        assert caught.value.code == -32021
        assert caught.value.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_client_refuses_a_form(case: Case) -> None:
    """In the handshake era our server hears of it; after it the client gives up by itself."""
    answers = Answers({"Where to?": ErrorData(code=-32000, message="not now")})
    async with case.connect("bench", elicitation_callback=answers) as client:
        with pytest.raises(MCPError, match="refused elicitation/create" if case.handshake else "not now"):
            await client.call_tool("book")


@pytest.mark.parametrize("mode", ["legacy"])  # after it, no call is under way while the user thinks
async def test_question_of_a_cancelled_call_is_withdrawn(case: Case) -> None:
    asked, withdrawn = anyio.Event(), anyio.Event()

    async def answer(_context: Any, _params: Any) -> ElicitResult:
        try:
            asked.set()
            await anyio.sleep_forever()
        finally:
            withdrawn.set()

    async with case.connect("bench", elicitation_callback=answer) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "book")
            await asked.wait()
            tasks.cancel_scope.cancel()
        await withdrawn.wait()
