"""`Features`: tools, resources, prompts and other features of a server, declared as functions.

    features = Features[Files]()

    @features.tool(read_only=True)
    async def read_text_file(ctx: Context[Files], path: str) -> str:
        \"\"\"Read a text file as UTF-8.\"\"\"
        return await ctx.state.read_text(path)

The decorators return the function unchanged, so a test can call it without a server. A declaration that can't work
raises DeclarationError when its module is imported.
"""

from collections.abc import Awaitable, Callable, Mapping
from inspect import iscoroutinefunction, isroutine, signature, unwrap
from typing import Any, Generic, TypeAlias, TypeVar, Unpack, overload

from ..errors import DeclarationError
from ..protocol.methods import Method
from ..protocol.types.base import Params
from .completion import Completer, Completions
from .dispatch.context import Context
from .functions.location import locate_errors
from .prompts import PromptKeywords, PromptOptions, Prompts, PromptSource, RegisteredPrompt
from .resources import Lister, RegisteredResource, ResourceKeywords, ResourceOptions, Resources
from .tools import RegisteredTool, ToolKeywords, ToolOptions, Tools

State = TypeVar("State")
F = TypeVar("F", bound=Callable[..., Any])
Options = TypeVar("Options")
_STRING_OPTIONS = {"name", "title", "description", "mime_type", "app"}
"""The options of declarations whose values are strings."""

AnyRun: TypeAlias = Any
"""A `Run`, whose type can't be named here because its module imports this one."""
Handler = Callable[[AnyRun, Context[Any], Any], Awaitable[dict[str, Any]]]
"""A function that answers requests of a method. It accepts the run, the context of the call and its validated params,
and returns a result in the form of the newest version. `Server.translate` converts its exceptions."""
AtOnce = Callable[[AnyRun, Context[Any], Any], dict[str, Any] | None]
"""A function that answers some of the same requests at once: in the same turn of the event loop, without waiting. For
a request for which it returns None or raises, the `Handler` is called."""


class Features(Generic[State]):
    """Tools, resources, prompts, completions, and custom methods. `State` is the type of `Context.state`."""

    def __init__(self) -> None:
        self.tools = Tools()
        self.resources = Resources()
        self.prompts = Prompts()
        self.completions = Completions()
        self.methods: list[Method] = []
        self.handlers: dict[str, Handler] = {}

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, function: None = None, /, **options: Unpack[ToolKeywords]) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, **options: Unpack[ToolKeywords]) -> Any:
        """Make a function a tool; the decorator works with and without parentheses. A plain `def` is called in a
        thread. The options are the fields of `ToolOptions`."""
        with locate_errors(None):
            parsed = _check_options(ToolOptions, options, "a tool")

        def declare(function: F) -> F:
            self.require_changeable()
            with locate_errors(function):
                self.tools.add(RegisteredTool(function, parsed))
            return function

        return declare if function is None else declare(_check_function(function, "@tool(name=...)"))

    def resource(self, uri: str, **options: Unpack[ResourceKeywords]) -> Callable[[F], F]:
        """Make a function the reader of the resource `uri`, which may be an RFC 6570 template. A plain `def` is
        called in a thread. The options are the fields of `ResourceOptions`."""
        with locate_errors(None):
            if not isinstance(uri, str):
                raise DeclarationError('a resource must be declared with its URI: @resource("notes://today")')
            parsed = _check_options(ResourceOptions, options, "a resource")

        def declare(function: F) -> F:
            self.require_changeable()
            with locate_errors(function):
                self.resources.add(RegisteredResource(uri, function, parsed))
            return function

        return declare

    def lists_resources(self, lister: Lister) -> Lister:
        """Make a function the source of further entries in `resources/list`, after those of declared resources."""
        self.require_changeable()
        require_coroutine(lister, "@lists_resources")
        self.resources.listers.append(lister)
        return lister

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, function: None = None, /, **options: Unpack[PromptKeywords]) -> Callable[[F], F]: ...
    def prompt(self, function: Any = None, /, **options: Unpack[PromptKeywords]) -> Any:
        """Make a function a prompt, whose arguments are the function's parameters; the decorator works with and
        without parentheses. A plain `def` is called in a thread. The options are the fields of `PromptOptions`."""
        with locate_errors(None):
            parsed = _check_options(PromptOptions, options, "a prompt")

        def declare(function: F) -> F:
            self.require_changeable()
            with locate_errors(function):
                self.prompts.add(RegisteredPrompt(function, parsed))
            return function

        return declare if function is None else declare(_check_function(function, "@prompt(name=...)"))

    def prompts_from(self, source: PromptSource) -> None:
        """Also serve the prompts of `source`, which are listed after the declared ones. Raises DeclarationError if
        there is a source already."""
        self.require_changeable()
        self.prompts.add_source(source)

    def completes(self, kind: str, name: str, argument: str) -> Callable[[Completer], Completer]:
        """Make a function the completer of an argument of the prompt `name` or, if `kind` is "resource", of a
        variable of the resource template `name`."""

        def declare(completer: Completer) -> Completer:
            self.require_changeable()
            require_coroutine(completer, "@completes")
            with locate_errors(completer):
                self.completions.add(kind, name, argument, completer)
            return completer

        return declare

    def method(self, name: str, params: type[Params] = Params) -> Callable[[F], F]:
        """Make a function the handler of a custom method. It accepts the context and the params."""

        def declare(function: F) -> F:
            async def handle(_running: AnyRun, context: Context[Any], values: Any) -> Any:
                return await function(context, values)

            self.require_changeable()
            self.methods.append(Method(name, params))
            self.handlers[name] = handle
            return function

        return declare

    def include(self, other: "Features[State]") -> None:
        """Add all features of `other`. Raises DeclarationError for duplicates and for a second source of prompts."""
        self.require_changeable()
        for tool in other.tools.all():
            with locate_errors(tool.function.declared):
                self.tools.add(tool)
        for resource in other.resources.all():
            with locate_errors(resource.function.declared):
                self.resources.add(resource)
        for prompt in other.prompts.all():
            with locate_errors(prompt.function.declared):
                self.prompts.add(prompt)
        if other.prompts.source is not None:
            self.prompts.add_source(other.prompts.source)
        self.resources.listers += other.resources.listers
        self.completions.include(other.completions)
        self.methods += other.methods
        self.handlers.update(other.handlers)

    def require_changeable(self) -> None:
        """Raise DeclarationError if nothing more can be declared. `Features` always accept declarations; a `Server`
        refuses them once it has been opened."""


def require_coroutine(function: Any, decorator: str) -> None:
    """Raise DeclarationError, with the author's file and line, if `function` is a plain `def`."""
    with locate_errors(function):
        # A lambda is accepted, because it may return the coroutine of another function.
        if isroutine(function) and not iscoroutinefunction(unwrap(function)) and function.__name__ != "<lambda>":
            raise DeclarationError(f"{decorator} takes an `async def`; {function.__name__!r} is a plain `def`")


def _check_options(kind: Callable[..., Options], options: Mapping[str, Any], what: str) -> Options:
    for name in _STRING_OPTIONS & options.keys():
        if not isinstance(options[name], str | None):
            raise DeclarationError(f"{name}={options[name]!r} of {what} is not a string")
    if isinstance(options.get("scopes"), str):
        raise DeclarationError(f"scopes={options['scopes']!r} of {what} is not a list of strings")
    try:
        return kind(**options)
    except TypeError:
        options_ = signature(kind).parameters
        unknown = ", ".join(repr(name) for name in options if name not in options_)
        raise DeclarationError(f"{what} has no option {unknown}; available: {', '.join(options_)}") from None


def _check_function(function: Any, form: str) -> Any:
    with locate_errors(None):
        if isinstance(function, classmethod):
            raise DeclarationError(
                "a class method is registered from outside its class, as in `app.tool(Notes.read)`"
            )
        if not callable(function):
            raise DeclarationError(f"options must be passed by name: {form}")
    return function
