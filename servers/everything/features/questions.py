"""Calls during which the server asks the client something: elicitation by form or URL, sampling, and roots.

They work in every protocol version that has such questions. The server sends them as requests to the client or, in
2026-07-28, in an `input_required` result. The tools in `rounds` show what is special about these results: keys,
states, and several questions at once or one after another.
"""

from typing import Any

from pydantic import BaseModel

from shared import Answer, Features, Question, ToolError, elicit_form, list_roots, sample

from . import Ctx
from .schemas import Choices, Colour, Confirmation, Contact, Defaults, Everything, Name

features = Features[None]()
rounds = Features[None]()

MAX_TOKENS = 100
WEATHER_TOOL = {
    "name": "get_weather",
    "description": "Tell the weather in a city.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
NAME = "What is your name?"
NAME_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CONFIRM = "Please confirm."
CAPITAL = "What is the capital of France?"


def user_message(text: str) -> dict[str, Any]:
    """Return the params of a completion with one message from the user."""
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": MAX_TOKENS}


def _describe_answer(title: str, answer: Answer[Any]) -> str:
    content = answer.data.model_dump_json(by_alias=True) if isinstance(answer.data, BaseModel) else "{}"
    return f"{title}: action={answer.action}, content={content}"


@features.tool(title="Sampling", read_only=True)
async def test_sampling(ctx: Ctx, prompt: str = "Say hello.") -> str:
    """Have the client's model answer a prompt, and repeat what it said."""
    completion = await ctx.sample("completion", user_message(prompt))
    return f"LLM response: {completion.text}"


@features.tool(title="Sampling with tools", read_only=True)
async def sample_with_tools(ctx: Ctx, prompt: str = "What is the weather in Paris?") -> str:
    """Offer the client's model a tool, and show why it stopped and what it said."""
    completion = await ctx.sample("completion", {**user_message(prompt), "tools": [WEATHER_TOOL]})
    blocks = completion.content if isinstance(completion.content, list) else [completion.content]
    return f"stopped by {completion.stop_reason}: {', '.join(str(block.get('type')) for block in blocks)}"


@features.tool(title="Elicitation", read_only=True)
async def test_elicitation(ctx: Ctx, message: str = "Please say who you are.") -> str:
    """Ask the user for a name and an address, both required."""
    return _describe_answer("User response", await ctx.ask("contact", message, Contact))


@features.tool(title="Elicitation with defaults", read_only=True)
async def test_elicitation_sep1034_defaults(ctx: Ctx) -> str:
    """Show a form whose text, two numbers, choice and switch are already filled in."""
    return _describe_answer(
        "Elicitation completed", await ctx.ask("defaults", "Please review these values.", Defaults)
    )


@features.tool(title="Elicitation with choices", read_only=True)
async def test_elicitation_sep1330_enums(ctx: Ctx) -> str:
    """Show a form with every kind of choice: one or several, with titles or without."""
    return _describe_answer("Elicitation completed", await ctx.ask("choices", "Please choose.", Choices))


@features.tool(title="Elicitation with restrictions", read_only=True)
async def elicit_every_field(ctx: Ctx) -> str:
    """Show a form with formats, lengths, ranges, and a choice of one or two out of three."""
    return _describe_answer(
        "Elicitation completed", await ctx.ask("profile", "Please describe yourself.", Everything)
    )


@features.tool(title="URL elicitation", read_only=True)
async def elicit_visit(ctx: Ctx, url: str = "https://example.com/consent") -> str:
    """Ask the user to visit a page, as for data that must not pass through the client."""
    answer = await ctx.ask_to_visit("visit", "Please give your consent on this page.", url)
    if answer.action != "accept":
        raise ToolError(f"the user chose to {answer.action}")
    return "The user has opened the page."


@features.tool(title="Progress, then elicitation", read_only=True)
async def test_streaming_elicitation(ctx: Ctx) -> str:
    """Report progress, then ask the user, on a stream that has begun."""
    await ctx.progress(1, 2, "about to ask")
    answer = await ctx.ask("contact", "Please say who you are.", Contact)
    await ctx.progress(2, 2, "answered")
    return _describe_answer("User response", answer)


@features.tool(title="Show the roots", read_only=True)
async def show_roots(ctx: Ctx) -> list[str]:
    """Ask the client for its roots and list their URIs."""
    return [root.uri for root in await ctx.roots()]


# Tools that show `input_required` results (2026-07-28)


@rounds.tool(title="One question", read_only=True)
async def test_input_required_result_elicitation(ctx: Ctx) -> str:
    """Ask for a name under the key `user_name`, and greet."""
    answer = await ctx.ask("user_name", NAME, Name)
    return f"Hello, {answer.data.name}!" if answer.data is not None else f"The user chose to {answer.action}."


@rounds.tool(title="One completion", read_only=True)
async def test_input_required_result_sampling(ctx: Ctx) -> str:
    """Have the client's model name a capital, under the key `capital_question`."""
    return (await ctx.sample("capital_question", user_message(CAPITAL))).text


@rounds.tool(title="Roots in a round", read_only=True)
async def test_input_required_result_list_roots(ctx: Ctx) -> str:
    """Ask for the client's roots, under the key `client_roots`."""
    roots = await ctx.roots("client_roots")
    return "\n".join(["Roots:", *(root.uri for root in roots)])


@rounds.tool(title="State between rounds", read_only=True)
async def test_input_required_result_request_state(ctx: Ctx) -> str:
    """Ask for confirmation, and send a state that must come back with the answer."""
    answer = await ctx.ask("confirm", CONFIRM, Confirmation)
    return f"state-ok: {answer.action}"


@rounds.tool(title="Three questions at once", read_only=True)
async def test_input_required_result_multiple_inputs(ctx: Ctx) -> str:
    """Ask for a name, a completion and the roots at once."""
    answers = await ctx.inputs(
        {
            "user_name": elicit_form(NAME, NAME_SCHEMA),
            "greeting": sample(user_message("Generate a greeting.")),
            "client_roots": list_roots(),
        }
    )
    name = (answers["user_name"].content or {}).get("name", "nobody")
    return f"{answers['greeting'].text} {name}, with {len(answers['client_roots'].roots)} roots"


@rounds.tool(title="Two rounds", read_only=True)
async def test_input_required_result_multi_round(ctx: Ctx) -> str:
    """Ask for a name, and only then for a color."""
    first = await ctx.ask("step1", NAME, Name)
    second = await ctx.ask("step2", "What is your favorite color?", Colour)
    return f"Both rounds are done: {first.action}, {second.action}"


@rounds.tool(title="Sealed state", read_only=True)
async def test_input_required_result_tampered_state(ctx: Ctx) -> str:
    """Ask for confirmation; a state that was changed in transit is refused."""
    answer = await ctx.ask("confirm", CONFIRM, Confirmation)
    return f"The state was intact: {answer.action}"


@rounds.tool(title="What the client can do", read_only=True)
async def test_input_required_result_capabilities(ctx: Ctx) -> str:
    """Ask only for what the client supports: a form, a completion, its roots, or nothing."""
    questions_by_capability: dict[tuple[str, ...], tuple[str, Question]] = {
        ("elicitation",): ("user_name", elicit_form(NAME, NAME_SCHEMA)),
        ("sampling",): ("greeting", sample(user_message("Generate a greeting."))),
        ("roots",): ("client_roots", list_roots()),
    }
    questions = dict(question for path, question in questions_by_capability.items() if ctx.peer.can(*path))
    answers = await ctx.inputs(questions) if questions else {}
    return f"answered: {', '.join(answers) or 'nothing, because nothing was asked'}"
