"""Our server asks the official client: a form, a page to visit, its model, its roots.

The same tool asks by a request in the handshake era, and by ending the call with `input_required` after it.
"""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
    ListRootsResult,
    Root,
    TextContent,
)

from .peers import STATELESS, Case

MODERN = pytest.mark.parametrize("mode", ["auto", STATELESS])


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


async def test_form_is_filled_in(case: Case) -> None:
    answers = Answers({"Where to?": {"city": "Oslo", "nights": 3, "season": "winter"}})
    assert await text_of(case, "book", elicitation_callback=answers) == "Oslo, 3 nights in winter"


async def test_form_has_a_schema(case: Case) -> None:
    answers = Answers({"Where to?": {"city": "Oslo"}})
    await text_of(case, "book", elicitation_callback=answers)
    (asked,) = answers.asked
    assert isinstance(asked, ElicitRequestFormParams)
    assert asked.requested_schema["required"] == ["city"]
    assert asked.requested_schema["properties"]["season"]["enum"] == ["summer", "winter"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_form_is_turned_down(case: Case, action: str) -> None:
    answers = Answers({"Where to?": ElicitResult(action=action)})
    assert await text_of(case, "book", elicitation_callback=answers) == action


async def test_two_forms_in_a_row(case: Case) -> None:
    """From 2026-07-28 on this takes three rounds, and the answers of all of them count."""
    answers = Answers({"Who are you?": {"name": "Ada"}, "How old are you, Ada?": {"age": 36}})
    assert await text_of(case, "introduce", elicitation_callback=answers) == "Ada, 36"
    assert [asked.message for asked in answers.asked] == ["Who are you?", "How old are you, Ada?"]


async def test_two_forms_at_once(case: Case) -> None:
    answers = Answers({"Who are you?": {"name": "Ada"}, "How old are you?": {"age": 36}})
    assert await text_of(case, "survey", elicitation_callback=answers) == "Ada, 36"


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


async def test_page_is_visited(case: Case) -> None:
    answers = Answers({"Please sign in.": ElicitResult(action="accept")})
    assert await text_of(case, "sign_in", elicitation_callback=answers) == "accept"
    (asked,) = answers.asked
    assert isinstance(asked, ElicitRequestURLParams)
    assert asked.url == "https://example.com/sign-in"


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


async def test_prompt_asks_first(case: Case) -> None:
    answers = Answers({"Who are you?": {"name": "Ada"}})
    async with case.connect("bench", elicitation_callback=answers) as client:
        (message,) = (await client.get_prompt("ask_first")).messages
    assert message.content.text == "I am Ada."


# The client warns that sampling and roots are deprecated in the newest version.
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_model_is_asked(case: Case) -> None:
    asked: list[CreateMessageRequestParams] = []

    async def sampling(_context: Any, params: CreateMessageRequestParams) -> CreateMessageResult:
        asked.append(params)
        return CreateMessageResult(role="assistant", model="parrot", content=TextContent(type="text", text="lake"))

    assert await text_of(case, "rhyme", {"word": "snake"}, sampling_callback=sampling) == "parrot: lake"
    assert asked[0].messages[0].content.text == "What rhymes with snake?"
    assert (asked[0].max_tokens, asked[0].system_prompt) == (50, "One word.")


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_roots_are_asked_for(case: Case) -> None:
    async def roots(_context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri="file:///home", name="home"), Root(uri="file:///tmp", name="tmp")])

    assert await text_of(case, "whereabouts", list_roots_callback=roots) == "home=file:///home, tmp=file:///tmp"
