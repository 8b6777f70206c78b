"""Declaring tools, resources and prompts: the forms of the decorators, and their errors."""

import re
import sys
import threading
import typing
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from datetime import date
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import anyio
import pytest
from anyio import from_thread
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, PlainValidator, model_validator

from shared import Context, Features, Implementation, Server, ToolError
from shared.errors import DeclarationError
from shared.server.resources import ResourceKeywords, ResourceOptions
from shared.server.tools import ToolKeywords, ToolOptions
from tests.shared.server.peer import ERAS, PATIENCE, talking

Json = dict[str, Any]


def made() -> Server[None]:
    return Server(Implementation(name="made", version="1"))


def test_decorator_options_equal_those_that_are_read() -> None:
    assert get_type_hints(ToolKeywords).keys() == get_type_hints(ToolOptions).keys()
    assert get_type_hints(ResourceKeywords).keys() == get_type_hints(ResourceOptions).keys()


def test_decorators_take_parentheses_or_none() -> None:
    app = made()

    @app.tool
    async def first() -> str:
        """One."""
        return "1"

    @app.tool(title="Second")
    async def second() -> str:
        """Two."""
        return "2"

    @app.prompt
    async def third() -> str:
        """Three."""
        return "3"

    assert (app.tools.get("first"), first.__name__) != (None, "")
    assert [tool.name for tool in app.tools.all()] == ["first", "second"]
    assert [prompt.name for prompt in app.prompts.all()] == ["third"]


def test_unknown_options_are_refused_with_the_available_ones() -> None:
    app = made()
    mistakes: list[tuple[Callable[[], object], str]] = [
        (lambda: app.tool(readonly=True), "a tool has no option 'readonly'; available: name, title"),  # type: ignore[call-overload]
        (lambda: app.prompt(desc="a"), "a prompt has no option 'desc'; available: name, title"),  # type: ignore[call-overload]
        (lambda: app.tool("count"), "options must be passed by name"),  # type: ignore[call-overload]
        (lambda: app.tool(name=5), "name=5 of a tool is not a string"),  # type: ignore[call-overload]
        (lambda: app.tool(scopes="admin"), "scopes='admin' of a tool is not a list of strings"),
        (lambda: app.resource(made), "a resource must be declared with its URI"),  # type: ignore[arg-type]
        (lambda: app.tool(vars(Plain)["make"]), "a class method is registered from outside its class"),
        (lambda: app.tool(Plain()), "a tool is a function or a method, not <tests"),
        (lambda: app.tool(Plain), "a tool is a function or a method, not <class"),
        (lambda: app.prompt(partial(made)), r"a prompt is a function or a method, not functools\.partial"),
    ]
    for mistake, reason in mistakes:
        line = mistake.__code__.co_firstlineno
        with pytest.raises(DeclarationError, match=rf"test_features\.py:{line}: {reason}"):
            mistake()


@pytest.mark.parametrize(
    ("returns", "reason"),
    [
        (None, "tool 'count' needs a return annotation"),
        (bytes, "tool 'count' can't return bytes"),
        (object, "tool 'count' can't return object"),
        (str | bytes, "tool 'count' can't return str | bytes"),
    ],
)
def test_a_return_type_that_can_not_be_sent_is_refused(returns: Any, reason: str) -> None:
    async def count() -> None:
        """Counts."""

    if returns is None:
        del count.__annotations__["return"]
    else:
        count.__annotations__["return"] = returns
    with pytest.raises(DeclarationError) as raised:
        made().tool(count)
    assert reason in str(raised.value)


@pytest.mark.parametrize("era", ERAS)
async def test_plain_functions_run_in_a_thread(era: str) -> None:
    app = made()

    @app.tool
    def where(ctx: Context[None], word: str) -> str:
        """Say where it runs."""
        from_thread.run(ctx.progress, 1)
        return f"{word} {threading.current_thread() is threading.main_thread()}"

    @app.resource("made://{name}")
    def read(name: str) -> str:
        """Read it."""
        return name

    @app.prompt
    def ask(name: str) -> str:
        """Ask it."""
        return name

    assert read("x") == "x"
    async with talking(app, era) as peer:
        result = (await peer.request("tools/call", {"name": "where", "arguments": {"word": "main:"}}))["result"]
        assert result["content"][0]["text"] == "main: False"
        assert (await peer.request("resources/read", {"uri": "made://x"}))["result"]["contents"][0]["text"] == "x"
        prompt = await peer.request("prompts/get", {"name": "ask", "arguments": {"name": "y"}})
        assert prompt["result"]["messages"][0]["content"]["text"] == "y"


async def test_a_cancelled_plain_function_ends_at_its_next_call_of_ours() -> None:
    app = made()
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    @app.tool
    def hang() -> str:
        """Hang."""
        began.set()
        go_on.wait(PATIENCE)
        try:
            from_thread.check_cancelled()
        finally:
            ended.set()
        return "never"

    with anyio.fail_after(PATIENCE):
        async with app.open() as run:
            function = run.features.tools.find("hang", None).function.call
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(function)
                await anyio.to_thread.run_sync(began.wait)
                tasks.cancel_scope.cancel()
            assert not ended.is_set()
            go_on.set()
            await anyio.to_thread.run_sync(ended.wait)


async def test_a_thread_occupies_a_slot_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.server.functions.threads._MAX_THREADS", 1)
    app = made()
    go_on = threading.Event()
    counted: list[int] = []

    @app.tool
    def work(number: int) -> None:
        """Work."""
        counted.append(number)
        go_on.wait(PATIENCE)

    function = app.tools.find("work", None).function.call
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: function(number=1))
            while not counted:
                await anyio.sleep(0)
            tasks.cancel_scope.cancel()
        with anyio.move_on_after(0.05):
            await function(number=2)
        assert counted == [1]
        go_on.set()
        await function(number=3)
    assert counted == [1, 3]


@pytest.mark.parametrize("turns", range(6))
async def test_a_call_cancelled_as_it_begins_frees_its_slot(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.server.functions.threads._MAX_THREADS", 1)
    app = made()

    @app.tool
    def work(number: int) -> int:
        """Work."""
        return number

    function = app.tools.find("work", None).function.call

    async def begin() -> None:
        await function(number=1)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(begin)
            for _ in range(turns):
                await anyio.sleep(0)
            tasks.cancel_scope.cancel()
        assert await function(number=2) == 2


async def test_changes_without_subscriptions_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with made().open() as run:
        run.changes.resource("made://a")
        run.changes.resource("made://b")
    assert caplog.text.count("no one can be notified that made://a changed: the server has no `on_subscribe`") == 1
    assert "made://b" not in caplog.text


def test_a_declaration_error_has_the_file_and_line_of_the_function() -> None:
    def count(word: str):  # type: ignore[no-untyped-def]
        """Count."""

    line = count.__code__.co_firstlineno
    with pytest.raises(DeclarationError, match=rf"test_features\.py:{line}: tool 'count' needs a return annotation"):
        made().tool(count)


@pytest.mark.parametrize(
    "decorator", ["lists_resources", "on_subscribe", "on_unsubscribe", "on_wanted", "on_ready", "lifespan"]
)
def test_a_plain_function_is_refused_as_an_async_hook(decorator: str) -> None:
    def hook(*_: Any) -> str:
        return ""

    line = hook.__code__.co_firstlineno
    with pytest.raises(DeclarationError, match=rf"test_features\.py:{line}: @{decorator} takes an `async def`"):
        getattr(made(), decorator)(hook)


@pytest.mark.parametrize(
    "decorator",
    ["on_subscribe", "on_unsubscribe", "on_wanted", "on_health", "on_ready", "lifespan", "error(KeyError)"],
)
def test_a_second_function_does_not_replace_the_first(decorator: str) -> None:
    server, name = made(), decorator.partition("(")[0]
    declare = server.error(KeyError) if name == "error" else getattr(server, name)

    async def first(opening: Any) -> AsyncIterator[str]:
        yield ""

    async def second(*_: Any) -> str:
        return ""

    declare(first if name == "lifespan" else second)
    line = second.__code__.co_firstlineno
    with pytest.raises(
        DeclarationError, match=rf"test_features\.py:{line}: @{re.escape(decorator)} is already set, to"
    ):
        declare(second)


def test_a_tool_included_twice_is_refused_with_its_location() -> None:
    part: Features[None] = Features()

    @part.tool
    def count() -> int:
        """Count."""
        return 1

    app = made()
    app.include(part)
    with pytest.raises(DeclarationError, match=r"test_features\.py:\d+: there is already a tool 'count'"):
        app.include(part)


@pytest.mark.parametrize(
    ("translation", "answer", "logged"),
    [
        (lambda error: ToolError("none"), "none", ""),
        (lambda: ToolError("none"), "", "the @error function for KeyError failed"),
        (
            lambda error: "none",
            "",
            "the @error function for KeyError returned 'none', not an error such as ToolError",
        ),
    ],
)
async def test_a_failing_error_translation_is_logged(
    translation: Any, answer: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = made()
    app.error(KeyError)(translation)

    @app.tool
    def fail() -> str:
        """Fail."""
        raise KeyError("secret")

    async with talking(app) as peer:
        got = await peer.request("tools/call", {"name": "fail", "arguments": {}})
    assert (got["result"]["content"][0]["text"] if answer else got["error"]["message"]) == (
        answer or "internal error"
    )
    assert logged in caplog.text


async def test_a_translation_may_raise_the_error() -> None:
    app = made()

    @app.error(KeyError)
    def translate(error: KeyError) -> ToolError:
        raise ToolError("none")

    @app.tool
    async def fail() -> str:
        """Fail."""
        raise KeyError

    async with talking(app) as peer:
        assert await peer.text("fail") == "none"


def test_an_error_translation_needs_an_exception_class() -> None:
    with pytest.raises(DeclarationError, match=r"test_features\.py:\d+: @error takes a class of exceptions, as in"):
        made().error("KeyError")  # type: ignore[arg-type]


def test_a_plain_function_is_refused_as_a_completion() -> None:
    with pytest.raises(DeclarationError, match="@completes takes an `async def`"):
        made().completes("prompt", "greet", "name")(len)  # type: ignore[arg-type]


def test_a_lifespan_must_yield() -> None:
    async def living(_: Any) -> None: ...

    with pytest.raises(DeclarationError, match="@lifespan takes an `async def` that yields the state once"):
        made().lifespan(living)


def test_a_lifespan_needs_the_opening_parameter() -> None:
    async def living() -> AsyncIterator[None]:
        yield

    for function in (living, asynccontextmanager(living)):
        with pytest.raises(DeclarationError, match=r"\d+: @lifespan takes an `async def` .* `async def open_state\("):
            made().lifespan(function)


async def test_a_lifespan_may_be_a_context_manager() -> None:
    app: Server[str] = Server(Implementation(name="made", version="1"))

    @app.lifespan
    @asynccontextmanager
    async def living(_: Any) -> AsyncIterator[str]:
        yield "open"

    async with app.open() as run:
        assert run.state == "open"


def test_a_server_without_a_version_is_refused() -> None:
    with pytest.raises(DeclarationError, match="a server must have a name and a version"):
        Server[None]("notes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("not a uri", "'not a uri' is not a URI: a URI begins with a scheme"),
        ("notes", "'notes' is not a URI"),
        ("note://my note/{name}", "is not a URI"),
        ("note://{title}", "note://{title} has the variable 'title', which is not an argument"),
        ("note://all", "its argument 'name' is not a variable of note://all"),
    ],
)
def test_a_resource_uri_must_match_its_arguments(uri: str, reason: str) -> None:
    def note(name: str) -> str:
        return name

    with pytest.raises(DeclarationError) as raised:
        made().resource(uri)(note)
    assert reason in str(raised.value)


class Plain:
    """A class that JSON can't carry."""

    def act(self) -> str:
        """Act."""
        return ""

    @classmethod
    def make(cls) -> str:
        """Make."""
        return ""

    def __call__(self) -> str:
        """Call."""
        return ""


class Typed(typing.TypedDict):
    """A typed dict, which pydantic reads from Python 3.12 on."""

    a: int


async def takes_plain(thing: Plain) -> str:
    """Take."""
    return ""


async def returns_plain_list() -> list[Plain]:
    """Return."""
    return []


async def takes_function(act: Callable[[], None]) -> str:
    """Take."""
    return ""


async def takes_hidden(_x: int) -> str:
    """Take."""
    return ""


async def takes_configuration(model_config: int) -> str:
    """Take."""
    return ""


async def takes_optional_context(ctx: Context[None] | None = None) -> str:
    """Take."""
    return ""


async def takes_anything(*arguments: int) -> str:
    """Take."""
    return ""


async def takes_two_contexts(ctx: Context[None], other: Context[Any]) -> str:
    """Take."""
    return ""


async def takes_low_default(a: Annotated[int, Field(ge=1)] = 0) -> str:
    """Take."""
    return ""


async def takes_none_default(a: str = None) -> str:  # type: ignore[assignment] # noqa: RUF013
    """Take."""
    return ""


async def takes_wrong_default(a: int = "x") -> str:  # type: ignore[assignment]
    """Take."""
    return ""


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (takes_plain, "'thing' can't be Plain"),
        (returns_plain_list, "its return type can't be serialized"),
        (takes_function, "'act' can't be collections.abc.Callable[[], None]: Cannot generate a JsonSchema"),
        (takes_hidden, "'_x'"),
        (takes_configuration, "'model_config'"),
        (takes_optional_context, "the type of 'ctx' must be Context alone"),
        (takes_low_default, "the default of 'a', 0, is not valid: Input should be greater than or equal to 1"),
        (
            takes_none_default,
            "the default of 'a', None, is not valid: Input should be a valid string; declare `str | N",
        ),
        (takes_two_contexts, "'other' is a second Context"),
        (Plain.act, "'self' has no type; register the method of an object"),
        (takes_anything, "'arguments' must be a regular parameter; a decorator keeps them with `functools.wraps`"),
        (takes_wrong_default, "the default of 'a', 'x', is not valid: Input should be a valid integer"),
    ],
)
def test_a_type_without_a_schema_is_refused_at_declaration(function: Any, reason: str) -> None:
    line = function.__code__.co_firstlineno
    with pytest.raises(DeclarationError) as raised:
        made().tool(function)
    assert reason in str(raised.value)
    assert f"test_features.py:{line}: tool {function.__name__!r}" in str(raised.value)
    assert "http" not in str(raised.value)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic reads them")
def test_a_typed_dict_on_python_3_11_is_refused_with_an_alternative() -> None:
    def count(typed: Typed) -> str:
        """Count."""
        return ""

    with pytest.raises(DeclarationError, match=r"'typed' can't be Typed: Please use `typing_ext"):
        made().tool(count)


async def test_a_default_of_an_equivalent_form_is_accepted() -> None:
    async def read(path: Path = Path("a"), names: list[str] | None = None, day: date = date(2025, 1, 1)) -> str:
        """Read."""
        return ""

    made().tool(read)


def test_the_validators_of_a_default_do_not_run_at_declaration() -> None:
    def look(_: object) -> int:
        raise OSError("not now")

    @made().tool
    async def read(
        a: Annotated[int, AfterValidator(look)] = 0, b: Annotated[Plain, PlainValidator(look)] | None = None
    ) -> str:
        """Read."""
        return ""


async def test_a_type_of_the_enclosing_function_may_be_postponed() -> None:
    class Inner(BaseModel):
        a: int

    app = made()

    @app.tool
    async def read(inner: "Inner") -> "Inner":
        """Read."""
        return inner

    async with talking(app) as peer:
        result = (await peer.request("tools/call", {"name": "read", "arguments": {"inner": {"a": 1}}}))["result"]
    assert result["structuredContent"] == {"a": 1}


def test_a_type_imported_only_for_type_checkers_is_named() -> None:
    def read(a: "Missing") -> str:  # type: ignore[name-defined] # noqa: F821
        return ""

    with pytest.raises(
        DeclarationError, match="name 'Missing' is not defined; the types of a tool are needed at runtime"
    ):
        made().tool(read)


async def test_a_coroutine_behind_a_plain_wrapper_is_awaited() -> None:
    def passed(function: Any) -> Any:
        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            return function(*arguments, **named)

        return call

    app = made()

    @app.tool
    @passed
    async def count(a: int) -> str:
        """Count."""
        return str(a + 1)

    async with talking(app) as peer:
        result = (await peer.request("tools/call", {"name": "count", "arguments": {"a": 1}}))["result"]
    assert result["content"][0]["text"] == "2"


async def test_a_tool_without_a_schema_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    app = made()

    async def good() -> str:
        """Good."""
        return ""

    def bad(thing: Plain) -> str:
        """Bad."""
        return ""

    bad.__module__ = "servers.some"  # of the bundle, where nothing is checked at declaration
    app.tool(bad)
    app.tool(good)
    async with talking(app) as peer:
        listed = (await peer.request("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["good"]
    assert f"test_features.py:{bad.__code__.co_firstlineno}: tool 'bad': 'thing' can't be Plain" in caplog.text


def test_a_type_may_be_defined_after_the_tool() -> None:
    class Later(BaseModel):
        part: "Part"  # noqa: F821

    def count(later: Later) -> str:
        """Count."""
        return ""

    made().tool(count)


def test_the_schema_of_a_required_nullable_argument_contains_null() -> None:
    app = made()

    def count(a: int | None, b: int | None = None) -> str:
        """Count."""
        return ""

    app.tool(count)
    schema = app.tools.all()[0].entry["inputSchema"]
    assert schema["properties"] == {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "b": {"type": "integer"}}
    assert schema["required"] == ["a"]


def test_an_unknown_task_support_is_refused() -> None:
    def count() -> str:
        """Count."""
        return ""

    with pytest.raises(DeclarationError, match="task='yes' is unknown; available: 'forbidden', 'opt"):
        made().tool(task="yes")(count)  # type: ignore[call-overload]


async def test_a_task_tool_without_the_extension_is_refused_with_its_location() -> None:
    app = made()

    @app.tool(task="optional")
    def count() -> str:
        """Count."""
        return ""

    with pytest.raises(DeclarationError, match=r"test_features\.py:\d+: tool 'count' may run as a task: give"):
        async with app.open():
            pass


async def test_an_error_without_a_message_is_described() -> None:
    app = made()

    @app.tool
    async def fail() -> str:
        """Fail."""
        raise ToolError

    async with talking(app) as peer:
        assert await peer.text("fail") == "the tool failed, and gave no reason"


def test_a_prompt_argument_must_accept_strings() -> None:
    def sums(numbers: list[int]) -> str:
        """Sum."""
        return ""

    with pytest.raises(DeclarationError, match=r"'numbers' can't be list\[int\]: clients send it as text"):
        made().prompt(sums)


async def test_a_validator_may_convert_a_prompt_argument() -> None:
    class Split(BaseModel):
        parts: list[str]

        @model_validator(mode="before")
        @classmethod
        def split(cls, value: object) -> object:
            return {"parts": value.split(",")} if isinstance(value, str) else value

    app = made()

    @app.prompt
    def join(a: Annotated[list[str], BeforeValidator(lambda text: text.split(","))], b: Split | None = None) -> str:
        """Join."""
        return f"{'+'.join(a)} {b and b.parts}"

    async with talking(app) as peer:
        answer = await peer.request("prompts/get", {"name": "join", "arguments": {"a": "1,2", "b": "3,4"}})
    assert answer["result"]["messages"][0]["content"]["text"] == "1+2 ['3', '4']"


@pytest.mark.parametrize("returns", [int, bytes, dict[str, str], list[dict[str, str]]])
def test_a_prompt_returns_text_or_messages(returns: Any) -> None:
    def ask() -> None:
        """Ask."""

    ask.__annotations__["return"] = returns
    with pytest.raises(DeclarationError, match="prompt 'ask' can't return"):
        made().prompt(ask)


@pytest.mark.parametrize(
    ("returns", "is_refused"), [(dict, True), (int | None, True), (list[bytes] | None, False), (dict[str, str], True)]
)
def test_a_resource_returns_text_or_bytes(returns: Any, *, is_refused: bool) -> None:
    def read() -> None: ...

    read.__annotations__["return"] = returns
    with pytest.raises(DeclarationError, match="resource 'read' can't return") if is_refused else nullcontext():
        made().resource("made://read")(read)
