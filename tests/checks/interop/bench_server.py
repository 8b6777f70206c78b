"""A server for tests only: one small feature for each row of the matrix that no real server has.

python -m tests.checks.interop.bench_server [--transport http]
"""

import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Literal

import anyio
from pydantic import BaseModel, Field

from shared import Context, Data, Implementation, Opening, PromptMessage, Resource, Server, TextContent
from shared.program.run import run
from shared.protocol.session.questions import elicit_form
from shared.server.dispatch.context import form_schema

CITIES = ["Bergen", "Berlin", "Bern", "Oslo"]


class BenchSettings(BaseModel):
    """Where calls of several replicas meet."""

    meeting: Path | None = Field(None, description="folder that all replicas see")


class State:
    """What one call leaves for another one to see, in this process, or in a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._stopped: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)

    def stop(self, key: str) -> None:
        """The call under that key was stopped."""
        self._stopped[key].set()
        if self._folder is not None:
            (self._folder / f"{key}.stopped").touch()

    async def wait(self, key: str) -> None:
        """Waits until it was."""
        if self._folder is None:
            await self._stopped[key].wait()
            return
        while not (self._folder / f"{key}.stopped").exists():
            await anyio.sleep(0.02)


Ctx = Context[State]

app = Server[State](
    Implementation(name="bench", title="Bench", version="1.0", description="One small feature for each test."),
    instructions="For tests only.",
    settings=BenchSettings,
    capabilities={"logging": {}},
)


@app.lifespan
async def _open(opening: Opening) -> AsyncIterator[State]:
    yield State(opening.settings.meeting)


# Results


@app.tool(read_only=True)
async def echo(text: str) -> str:
    """Give the text back."""
    return text


@app.tool(read_only=True)
async def total(numbers: list[int]) -> Data[int]:
    """Add numbers up: data that is no object, which only the newest version can carry."""
    return Data(sum(numbers), f"the total is {sum(numbers)}")


@app.tool(read_only=True)
async def process() -> str:
    """Tell the number of this process."""
    return str(os.getpid())


@app.tool(read_only=True)
async def long(ctx: Ctx, characters: int, reports: int = 0) -> str:
    """Give a long text, of characters that take two bytes."""
    for step in range(reports):
        await ctx.progress(step)
    return "ø" * characters


@app.tool(read_only=True)
async def weather(
    city: Annotated[str, Field(json_schema_extra={"x-mcp-header": "City"})],
    days: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Days"})],
) -> str:
    """Tell the weather."""
    return f"{days} days of rain in {city}"


# While a call runs


@app.tool(read_only=True)
async def count(ctx: Ctx, steps: int) -> str:
    """Count, reporting each step."""
    for step in range(1, steps + 1):
        await ctx.progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@app.tool(read_only=True)
async def hold(ctx: Ctx, key: str) -> str:
    """Report once, then run until it is cancelled."""
    try:
        await ctx.progress(1)
        await anyio.sleep_forever()
    finally:
        ctx.state.stop(key)
    return "never"


@app.tool(read_only=True)
async def when_stopped(ctx: Ctx, key: str) -> str:
    """Wait until the call of `hold` under that key has been stopped."""
    await ctx.state.wait(key)
    return "stopped"


@app.tool(read_only=True)
async def chatter(ctx: Ctx) -> str:
    """Log one message at each of four levels."""
    for level in ("debug", "info", "warning", "error"):
        await ctx.log(level, {"said": level}, logger="bench")
    return "said"


# Questions to the client


class Place(BaseModel):
    city: str
    nights: Annotated[int, Field(ge=1)] = 1
    season: Literal["summer", "winter"] = "summer"


class Name(BaseModel):
    name: str


class Age(BaseModel):
    age: int


@app.tool(read_only=True)
async def book(ctx: Ctx) -> str:
    """Ask once."""
    answer = await ctx.ask("place", "Where to?", Place)
    if answer.data is None:
        return answer.action
    return f"{answer.data.city}, {answer.data.nights} nights in {answer.data.season}"


@app.tool(read_only=True)
async def introduce(ctx: Ctx) -> str:
    """Ask twice, the second time with what the first answer said."""
    name = (await ctx.ask("name", "Who are you?", Name)).data
    if name is None:
        return "nobody"
    age = (await ctx.ask("age", f"How old are you, {name.name}?", Age)).data
    return f"{name.name}, {age.age if age else 'of no age'}"


@app.tool(read_only=True)
async def survey(ctx: Ctx) -> str:
    """Ask two questions at once."""
    given = await ctx.inputs(
        {
            "name": elicit_form("Who are you?", form_schema(Name)),
            "age": elicit_form("How old are you?", form_schema(Age)),
        }
    )
    return f"{given['name'].content['name']}, {given['age'].content['age']}"


@app.tool(read_only=True)
async def sign_in(ctx: Ctx) -> str:
    """Ask the user to visit a page."""
    return (await ctx.ask_to_visit("page", "Please sign in.", "https://example.com/sign-in")).action


@app.tool(read_only=True)
async def rhyme(ctx: Ctx, word: str) -> str:
    """Have the client's model find a rhyme."""
    message = {"role": "user", "content": {"type": "text", "text": f"What rhymes with {word}?"}}
    given = await ctx.sample("rhyme", {"messages": [message], "maxTokens": 50, "systemPrompt": "One word."})
    return f"{given.model}: {given.text}"


@app.tool(read_only=True)
async def whereabouts(ctx: Ctx) -> str:
    """Name the client's roots."""
    return ", ".join(f"{root.name}={root.uri}" for root in await ctx.roots())


# Lists that change


@app.tool()
async def add_tool(ctx: Ctx, name: str) -> str:
    """Offer one tool more."""

    async def added() -> str:
        """A tool that was added later."""
        return "added"

    ctx.running.features.tool(name=name)(added)
    ctx.changes.tools()
    return name


@app.tool()
async def add_prompt(ctx: Ctx, name: str) -> str:
    """Offer one prompt more."""

    async def added() -> str:
        """A prompt that was added later."""
        return "added"

    ctx.running.features.prompt(name=name)(added)
    ctx.changes.prompts()
    return name


# Resources


@app.resource("bench://note", name="note", title="A note", mime_type="text/plain")
async def note() -> str:
    """A fixed text."""
    return "a note"


@app.resource("bench://bytes", name="bytes", mime_type="application/octet-stream")
async def some_bytes() -> bytes:
    """Bytes that are no text."""
    return b"\x00\xff\x10"


@app.resource("bench://city/{name}", name="city", mime_type="text/plain")
async def city(name: str) -> str:
    """A resource of a template."""
    return f"the city of {name}"


@app.lists_resources
async def _pages(_ctx: Ctx) -> list[Resource]:
    return [Resource(uri=f"bench://page/{number}", name=f"page {number}") for number in range(250)]


@app.completes("resource", "bench://city/{name}", "name")
async def _cities(_ctx: Ctx, typed: str, _settled: dict[str, str]) -> list[str]:
    return [one for one in CITIES if one.lower().startswith(typed.lower())]


# Prompts


@app.prompt(title="Greeting")
async def greet(
    name: Annotated[str, Field(description="whom to greet")],
    tone: Annotated[str, Field(description="warm or cool")] = "warm",
) -> list[PromptMessage]:
    """Greet somebody."""
    return [
        PromptMessage(role="user", content=TextContent(text=f"Say hello to {name}, in a {tone} way.")),
        PromptMessage(role="assistant", content=TextContent(text="Hello!")),
    ]


@app.completes("prompt", "greet", "tone")
async def _tones(_ctx: Ctx, typed: str, settled: dict[str, str]) -> list[str]:
    tones = ["warm", "witty", f"like {settled.get('name', 'nobody')}"]
    return [one for one in tones if one.startswith(typed)]


@app.prompt()
async def ask_first(ctx: Ctx) -> str:
    """A prompt that asks the user before it is made."""
    answer = await ctx.ask("name", "Who are you?", Name)
    return f"I am {answer.data.name if answer.data else 'nobody'}."


if __name__ == "__main__":
    sys.exit(run(app))
