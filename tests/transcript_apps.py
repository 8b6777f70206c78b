"""The servers that transcripts talk to. Each function makes a new one."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

import anyio
from pydantic import BaseModel, Field

from shared import (
    Annotations,
    AudioContent,
    CallToolResult,
    CompletionArgument,
    Context,
    EmbeddedResource,
    GetPromptResult,
    Icon,
    ImageContent,
    Implementation,
    Prompt,
    PromptArgument,
    PromptMessage,
    ResourceLink,
    ResourceNotFound,
    RpcError,
    Server,
    TextContent,
    TextResourceContents,
    ToolError,
)
from shared.extensions.skills import Skill, SkillFile, skills
from shared.extensions.tasks import tasks
from shared.protocol.session.questions import elicit_form, list_roots, sample

ICON = Icon(src="data:image/png;base64,AA==", mime_type="image/png", sizes=["16x16"])
TOKENS = {"messages": [{"role": "user", "content": {"type": "text", "text": "Name a colour."}}], "maxTokens": 5}


@dataclass
class Calls:
    """How the calls of `wait` ended."""

    stopped: int = 0


@dataclass
class Sum:
    """A sum; data, and an object."""

    total: int


@cache
def basic() -> Server[Calls]:
    """Every kind of feature and of result, declared once: its schemas take most of the time of a transcript."""
    implementation = Implementation(
        name="basic", version="1.2.3", title="Basic", description="For tests", website_url="https://example.org"
    )
    declared: dict[str, Any] = {"logging": {}, "extensions": {"org.example/nothing": {}}}
    app: Server[Calls] = Server(implementation, instructions="Use it.", capabilities=declared)

    @app.lifespan
    async def calls(_opening: object) -> AsyncIterator[Calls]:
        yield Calls()

    _text_tools(app)
    _content_tools(app)
    _acting_tools(app)
    _resources(app)
    _prompts(app)
    return app


def _text_tools(app: Server[Calls]) -> None:
    @app.tool(read_only=True, title="Echo", icons=[ICON], meta={"org.example/kind": "text"})
    async def echo(title: str, times: Annotated[int, Field(ge=1, le=3, description="How often")] = 1) -> str:
        """Says it again. Its argument has the name of a field of tools."""
        return title * times

    @app.tool(read_only=True)
    async def add(a: int, b: int) -> Sum:
        """Adds."""
        return Sum(a + b)

    @app.tool(read_only=True)
    async def primes() -> list[int]:
        """Data that is no object."""
        return [2, 3, 5]

    @app.tool(destructive=False)
    async def fail() -> str:
        """Fails in a way the model should read."""
        raise ToolError("there is no paper in the printer")

    @app.tool()
    async def crash() -> str:
        """Fails in a way nobody foresaw."""
        raise RuntimeError("secret detail")


def _content_tools(app: Server[Calls]) -> None:
    @app.tool(read_only=True)
    async def media() -> list[ImageContent | AudioContent]:
        """A picture and a sound."""
        return [ImageContent.of(b"picture", "image/png"), AudioContent.of(b"sound", "audio/wav")]

    @app.tool(read_only=True)
    async def pointers() -> CallToolResult:
        """A link and a resource, with everything that may stand on them."""
        notes = Annotations(audience=["user"], priority=0.5, last_modified="2025-01-01T00:00:00Z")
        link = ResourceLink(uri="memo:///note", name="note", title="A note", annotations=notes, icons=[ICON])
        inside = TextResourceContents(uri="memo:///note", text="hello", meta={"org.example/a": 1})
        blocks = [link, EmbeddedResource(resource=inside, annotations=notes, meta={"org.example/b": 2})]
        return CallToolResult(content=blocks, meta={"org.example/c": 3})


def _acting_tools(app: Server[Calls]) -> None:
    @app.tool()
    async def wait(ctx: Context[Calls]) -> str:
        """Never ends by itself."""
        try:
            await anyio.sleep_forever()
        finally:
            ctx.state.stopped += 1
        return "impossible"

    @app.tool()
    async def stopped(ctx: Context[Calls]) -> int:
        """How many calls of `wait` were stopped."""
        return ctx.state.stopped

    @app.tool()
    async def count(ctx: Context[Calls], to: list[float]) -> str:
        """Reports its progress."""
        for step in to:
            await ctx.progress(step, total=10, message=f"at {step:g}")
        return "counted"

    @app.tool()
    async def chatter(ctx: Context[Calls]) -> str:
        """Logs three lines."""
        await ctx.log("debug", "small")
        await ctx.log("info", {"size": 2}, logger="sizes")
        await ctx.log("error", ["large"])
        return "logged"

    @app.tool()
    async def changed(ctx: Context[Calls], what: list[str]) -> str:
        """Announces changes: of lists by their names, of resources by their URIs."""
        lists = {"tools": ctx.changes.tools, "prompts": ctx.changes.prompts, "resources": ctx.changes.resources}
        for one in what:
            lists[one]() if one in lists else ctx.changes.resource(one)
        return "announced"


def _resources(app: Server[Calls]) -> None:
    notes = Annotations(audience=["assistant"], priority=1, last_modified="2025-01-01T00:00:00Z")

    @app.resource("memo:///note", title="A note", mime_type="text/plain", annotations=notes, icons=[ICON])
    async def note() -> str:
        """A text."""
        return "hello"

    @app.resource("memo:///bytes", mime_type="application/octet-stream")
    async def some_bytes() -> bytes:
        return b"\x00\x01"

    @app.resource("memo:///page/{number}", title="A page", mime_type="text/plain", meta={"org.example/d": 4})
    async def page(number: int) -> str:
        """A page by its number."""
        if number > 9:
            raise ResourceNotFound(f"memo:///page/{number}")
        return f"page {number}"

    @app.on_subscribe
    async def key(_ctx: object, uri: str) -> str:
        if not uri.lower().startswith("memo:///"):
            raise ResourceNotFound(uri)
        return uri.lower()


def _prompts(app: Server[Calls]) -> None:
    @app.prompt(title="Greeting")
    async def greet(name: Annotated[str, Field(description="Whom")], loudly: bool = False) -> str:
        """Greets somebody."""
        return f"Say hello to {name}{'!' if loudly else '.'}"

    @app.prompt()
    async def talk() -> list[PromptMessage]:
        """A conversation with a sound in it."""
        sound = AudioContent.of(b"sound", "audio/wav")
        return [
            PromptMessage(role="user", content=TextContent(text="What is this?", meta={"org.example/e": 5})),
            PromptMessage(role="assistant", content=sound),
        ]

    @app.completes("prompt", "greet", "name")
    async def names(ctx: Context[Calls], typed: str, settled: dict[str, str]) -> list[str]:
        return [name for name in ("Ada", "Alan", "Grace") if name.startswith(typed)] + sorted(settled)

    @app.completes("resource", "memo:///page/{number}", "number")
    async def numbers(ctx: Context[Calls], typed: str, settled: dict[str, str]) -> list[str]:
        return [f"{typed}{number}" for number in range(200)]


def paged() -> Server[None]:
    """Two entries a page."""
    app: Server[None] = Server(Implementation(name="paged", version="1"))
    app.page_size = 2
    for letter in "abc":

        async def tool() -> str:
            """A tool."""
            return ""

        async def reader(number: str) -> str:
            return number

        async def fixed() -> str:
            return ""

        async def prompt() -> str:
            """A prompt."""
            return ""

        app.tool(name=letter)(tool)
        app.prompt(name=letter)(prompt)
        app.resource(f"memo:///{letter}", name=letter)(fixed)
        app.resource(f"memo:///{letter}/{{number}}", name=letter)(reader)
    return app


def bare() -> Server[None]:
    """One tool, and no other feature."""
    app: Server[None] = Server(Implementation(name="bare", version="1"))

    @app.tool()
    async def nothing(ctx: Context[None]) -> None:
        """Does nothing, and would log it."""
        await ctx.log("emergency", "nothing")

    return app


class Order(BaseModel):
    """What to bring."""

    dish: Literal["soup", "salad"]
    portions: int = Field(default=1, ge=1, le=9)
    hot: bool = True


class Address(BaseModel):
    """Where to bring it."""

    street: str = Field(description="Street and number", min_length=1)


def asking() -> Server[None]:
    """Tools that ask the client."""
    app: Server[None] = Server(Implementation(name="asking", version="1"))
    _asking_tools(app)

    @app.prompt()
    async def menu(ctx: Context[None], day: str) -> str:
        """Asks before it renders."""
        order = await ctx.ask("order", f"What on {day}?", Order)
        return order.data.dish if order.data is not None else order.action

    @app.resource("memo:///roots")
    async def roots(ctx: Context[None]) -> str:
        """Asks before it reads."""
        return "\n".join(root.uri for root in await ctx.roots())

    return app


def _asking_tools(app: Server[None]) -> None:
    @app.tool()
    async def order(ctx: Context[None], table: int = 1) -> str:
        """Asks one thing."""
        answer = await ctx.ask("order", "What shall it be?", Order)
        return f"{answer.action}: {answer.data!r}"

    @app.tool()
    async def deliver(ctx: Context[None]) -> str:
        """Asks one thing after another."""
        order = await ctx.ask("order", "What shall it be?", Order)
        where = await ctx.ask("where", "Where do you live?", Address)
        return f"{order.data!r} to {where.data!r}"

    @app.tool()
    async def everything(ctx: Context[None]) -> str:
        """Asks three things at once."""
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        questions = {"who": elicit_form("Who?", form), "where": list_roots(), "what": sample(TOKENS)}
        answers = await ctx.inputs(questions)
        return f"{answers['who'].content} {answers['where'].roots[0].uri} {answers['what'].text}"

    @app.tool()
    async def colour(ctx: Context[None]) -> str:
        """Asks the model."""
        return (await ctx.sample("colour", TOKENS)).text

    @app.tool()
    async def sign_in(ctx: Context[None]) -> str:
        """Asks the user to visit a page."""
        return (await ctx.ask_to_visit("sign-in", "Please sign in.", "https://example.org/sign-in")).action


def tasked() -> Server[Calls]:
    """Tools that run as tasks, and get on when a client says so."""
    app: Server[Calls] = Server(Implementation(name="tasked", version="1"), extensions=[tasks()])
    gate = anyio.Event()

    @app.lifespan
    async def calls(_opening: object) -> AsyncIterator[Calls]:
        yield Calls()

    @app.tool()
    async def open_gate(ctx: Context[Calls]) -> str:
        """Lets what waits at the gate go on; says how many have stopped waiting."""
        gate.set()
        return f"{ctx.state.stopped} stopped"

    @app.tool(task="optional")
    async def greet() -> str:
        """Greets at once."""
        return "Hello!"

    @app.tool(task="required")
    async def wait(ctx: Context[Calls]) -> str:
        """Waits at the gate."""
        try:
            await gate.wait()
        finally:
            ctx.state.stopped += not gate.is_set()
        return "done"

    @app.tool(task="required")
    async def fail(as_result: bool) -> str:
        """Fails at the gate."""
        await gate.wait()
        raise ToolError("it can't be done") if as_result else RpcError("it broke", code=-31_000, data={"at": "gate"})

    @app.tool(task="required")
    async def order(ctx: Context[Calls]) -> str:
        """Asks one thing, then two at once."""
        first = await ctx.ask("order", "What shall it be?", Order)
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        both = await ctx.inputs({"order": elicit_form("What else?", form), "who": elicit_form("Who?", form)})
        return ", ".join([first.action, *(answer.action for answer in both.values())])

    return app


HEADS = {
    "team/review": {"description": "Reads changes.", "metadata": {"version": "2"}},
    "team/review/parts/style": {"description": "Knows how code should look.", "license": "MIT"},
    "notes": {"description": "Keeps notes."},
    "secret": {"description": "Is told of by word of mouth."},
}


class Folders:
    """Four skills as the files of their folders. One lies inside another, and the last is not listed."""

    def __init__(self) -> None:
        heads = {path: {"name": path.rpartition("/")[2], **head} for path, head in HEADS.items()}
        self.files = {path: {"SKILL.md": _manifest(head)} for path, head in heads.items()}
        inside = self.files["team/review/parts/style"]
        inside["examples/good one.py"] = b"pass\n"
        self.files["team/review"]["logo.png"] = b"\x89PNG"
        self.files["team/review"] |= {f"parts/style/{name}": data for name, data in inside.items()}
        self.skills = {
            path: Skill(path, heads[path], {name: SkillFile.of(data) for name, data in files.items()})
            for path, files in self.files.items()
        }

    async def list(self, context: Context[None]) -> Sequence[Skill]:
        return list(self.skills.values())[:-1]

    async def get(self, context: Context[None], path: str) -> Skill | None:
        return self.skills.get(path)

    async def read(self, context: Context[None], skill: Skill, file: str) -> bytes | None:
        return self.files[skill.path].get(file)


def _manifest(head: dict[str, Any]) -> bytes:
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in head.items())
    return f"---\n{lines}---\nRead.\n".encode()


def skilled() -> Server[None]:
    """Skills, two entries a page."""
    app: Server[None] = Server(Implementation(name="skilled", version="1"), extensions=[skills(Folders())])
    app.page_size = 2
    return app


class Sheets:
    """Three prompts that no function was declared for. Each asks for its subject where none is given."""

    async def page(self, context: Context[None], after: str, most: int) -> Sequence[Prompt]:
        argument = PromptArgument(name="subject", title="Subject", required=True)
        found = [name for name in ("praise", "scold", "thank") if name > after]
        return [Prompt(name=name, title=name.title(), arguments=[argument]) for name in found[:most]]

    async def get(self, context: Context[None], name: str, arguments: dict[str, str]) -> GetPromptResult | None:
        if name not in ("praise", "scold", "thank"):
            return None
        subject = arguments.get("subject") or (await context.ask("subject", "Whom?", Subject)).data
        content = TextContent(text=f"Please {name} {subject.subject if isinstance(subject, Subject) else subject}.")
        return GetPromptResult(messages=[PromptMessage(role="user", content=content)])

    async def complete(
        self, context: Context[None], name: str, argument: CompletionArgument, settled: dict[str, str]
    ) -> tuple[Sequence[str], int] | None:
        return ([f"{argument.value} and all"], 7) if name == "praise" else None


class Subject(BaseModel):
    """Who it is about."""

    subject: str


def sourced() -> Server[None]:
    """Prompts from a source after a declared one, two entries a page."""
    app: Server[None] = Server(Implementation(name="sourced", version="1"))
    app.page_size = 2

    @app.prompt()
    async def greet() -> str:
        """Greets."""
        return "hello"

    app.prompts_from(Sheets())
    return app


@dataclass
class Gate:
    """What the calls of `wait` wait for."""

    opened: anyio.Event


def errands() -> Server[Gate]:
    """Tools that may run as tasks, must, or can't."""
    app: Server[Gate] = Server(Implementation(name="errands", version="1"), extensions=[tasks()])

    @app.lifespan
    async def gate(_opening: object) -> AsyncIterator[Gate]:
        yield Gate(anyio.Event())

    @app.tool()
    async def go(ctx: Context[Gate]) -> str:
        """Lets go on what waits."""
        ctx.state.opened.set()
        return "opened"

    @app.tool(task="optional")
    async def wait(ctx: Context[Gate]) -> str:
        """Waits to be let go on."""
        await ctx.progress(1, 2, "waiting")
        await ctx.state.opened.wait()
        return "waited"

    @app.tool(task="required")
    async def fail(how: Literal["tool", "protocol"]) -> str:
        """Fails."""
        if how == "tool":
            raise ToolError("it can't be done")
        raise RpcError("it broke", code=-31_000, data={"part": 1})

    @app.tool(task="required")
    async def order(ctx: Context[Gate]) -> str:
        """Asks one thing."""
        answer = await ctx.ask("order", "What shall it be?", Order)
        return f"{answer.action}: {answer.data!r}"

    @app.tool(task="required")
    async def everything(ctx: Context[Gate]) -> str:
        """Asks three things at once."""
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        questions = {"who": elicit_form("Who?", form), "where": list_roots(), "what": sample(TOKENS)}
        answers = await ctx.inputs(questions)
        return f"{answers['who'].content} {answers['where'].roots[0].uri} {answers['what'].text}"

    return app
