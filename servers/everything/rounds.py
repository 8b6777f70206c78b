"""Calls that take several rounds (2026-07-28): keys, states, several questions at once, one after another.

In older versions the same functions ask by requests and wait.
"""

from shared import Question, elicit_form, list_roots, sample

from .app import Ctx, app
from .conversation import user_message
from .forms import Colour, Confirmation, Name

__all__ = [
    "test_input_required_result_capabilities",
    "test_input_required_result_elicitation",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_request_state",
    "test_input_required_result_sampling",
    "test_input_required_result_tampered_state",
]

NAME = "What is your name?"
NAME_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CONFIRM = "Please confirm."
CAPITAL = "What is the capital of France?"


@app.tool(title="One question", read_only=True)
async def test_input_required_result_elicitation(ctx: Ctx) -> str:
    """Ask for a name under the key `user_name`, and greet."""
    answer = await ctx.ask("user_name", NAME, Name)
    return f"Hello, {answer.data.name}!" if answer.data is not None else f"The user chose to {answer.action}."


@app.tool(title="One completion", read_only=True)
async def test_input_required_result_sampling(ctx: Ctx) -> str:
    """Have the client's model name a capital, under the key `capital_question`."""
    return (await ctx.sample("capital_question", user_message(CAPITAL))).text


@app.tool(title="Roots in a round", read_only=True)
async def test_input_required_result_list_roots(ctx: Ctx) -> str:
    """Ask for the client's roots, under the key `client_roots`."""
    roots = await ctx.roots("client_roots")
    return "\n".join(["Roots:", *(root.uri for root in roots)])


@app.tool(title="State between rounds", read_only=True)
async def test_input_required_result_request_state(ctx: Ctx) -> str:
    """Ask for a confirmation and give a state that must come back with it."""
    answer = await ctx.ask("confirm", CONFIRM, Confirmation)
    return f"state-ok: {answer.action}"


@app.tool(title="Three questions at once", read_only=True)
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


@app.tool(title="Two rounds", read_only=True)
async def test_input_required_result_multi_round(ctx: Ctx) -> str:
    """Ask for a name, and only then for a colour."""
    first = await ctx.ask("step1", NAME, Name)
    second = await ctx.ask("step2", "What is your favourite colour?", Colour)
    return f"Both rounds are done: {first.action}, {second.action}"


@app.tool(title="State that is sealed", read_only=True)
async def test_input_required_result_tampered_state(ctx: Ctx) -> str:
    """Ask for a confirmation; a state that was changed on its way is refused."""
    answer = await ctx.ask("confirm", CONFIRM, Confirmation)
    return f"The state was intact: {answer.action}"


@app.tool(title="What the client can", read_only=True)
async def test_input_required_result_capabilities(ctx: Ctx) -> str:
    """Ask only what the client declared: a form, a completion, its roots, or nothing."""
    possible: dict[tuple[str, ...], tuple[str, Question]] = {
        ("elicitation",): ("user_name", elicit_form(NAME, NAME_SCHEMA)),
        ("sampling",): ("greeting", sample(user_message("Generate a greeting."))),
        ("roots",): ("client_roots", list_roots()),
    }
    questions = dict(question for path, question in possible.items() if ctx.peer.can(*path))
    answers = await ctx.inputs(questions) if questions else {}
    return f"answered: {', '.join(answers) or 'nothing, for nothing was asked'}"
