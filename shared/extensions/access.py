"""Who may do what: requests that need more than their principal has are refused before anything is done for them.

    server.open(extensions=[access(Policy("files", rules))])

What the operator grants a principal in no case is not there for it: not listed, and unknown where it is named. What a
token with further scopes would allow is listed, and refused with the names of all that are needed, so that the client
can obtain such a token (2026-07-28, Authorization, Scope Challenge Handling).
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from ..auth.policy import Policy
from ..errors import InvalidParams, McpError, MethodNotFound, ResourceNotFound, UnknownTool
from ..protocol.identity import Principal
from ..protocol.methods import Method
from ..protocol.records import record
from ..protocol.types.prompts import CompleteParams, PromptReference
from ..protocol.types.resources import ListenParams
from ..server.dispatch.context import Context
from ..server.extension import Extension
from ..server.features import Handler
from ..server.handlers.dispatch import call_tool
from ..server.prompts import unknown_prompt
from ..server.run import Run
from ..text import nearest

log = logging.getLogger("shared.access")

ACCESS = "access"
"""The name of the extension."""

_ALWAYS = frozenset({"resources/unsubscribe", "logging/setLevel"})
"""What ends something."""
_TASKS = "tasks/"
"""How the names of methods begin which are about tasks: each needs what its call has needed, and tasks know that."""
_DIALECTS = "dialects/"
"""How the names of methods begin which call those of the protocol, that are guarded."""

_Kind = Callable[["Access", Run[Any], str], frozenset[str]]


@record
class _List:
    """One list in a result: where it stands, what its entries are called by, and what such a thing needs."""

    path: tuple[str, ...]
    key: str
    needs: _Kind


@record
class _Needed:
    """What a request needs, and what is said where there is no such thing."""

    scopes: frozenset[str]
    absence: Callable[[], McpError]


def access(policy: Policy) -> Extension[Any]:
    """The extension that has every request keep to `policy`."""
    guard = Access(policy)
    extension = Extension[Any](ACCESS, around=guard.around)
    extension.outermost, extension.hides = 1, guard.hides_tool
    extension.scopes = partial(_scopes, policy)
    extension.lifespan = _Lookout(policy).living
    return extension


def _scopes(policy: Policy, running: Run[Any]) -> tuple[list[str], list[str]]:
    """All scopes that something needs at `running`, and those that are worth asking for at first."""
    tools = [(tool.name, tool.options) for tool in running.features.tools.on_offer(running.settings)]
    # Of tools that are elsewhere nothing is known.
    others = frozenset() if _declares_tools(running) else policy.of_others
    return sorted({*policy.supported(tools), *others}), sorted(policy.read_scopes)


def _declares_tools(running: Run[Any]) -> bool:
    return running.features.handlers.get("tools/call") is call_tool


class _Lookout:
    """Tells the operator of rules for tools that there are none of, once. They may come, so the rules stand."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._has_looked = False

    @asynccontextmanager
    async def living(self, running: Run[Any]) -> AsyncIterator[None]:
        """As long as the block the server runs."""
        if not self._has_looked and _declares_tools(running):
            self._has_looked = True
            names = [tool.name for tool in running.features.tools.all()]
            for name in self._policy.rules.scopes:
                if ":" not in name and name not in names:
                    close = nearest(name, names)
                    advice = "" if close is None else f"; did you mean {close!r}?"
                    log.warning("scopes: there is no tool %r at %s%s", name, self._policy.server, advice)
        yield


class Access:
    """The guard of one server."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def around(self, method: Method, handler: Handler) -> Handler:
        """The handler of `method` for those who may."""
        name = method.handler
        if method.built_in or name in _ALWAYS or name.startswith(_TASKS):
            return handler
        if name in _LISTS:
            return self._listing(_LISTS[name], handler)
        if name.startswith(_DIALECTS):
            return handler
        return self._listening(handler) if name == "subscriptions/listen" else self._guarded(name, handler)

    def hides_tool(self, running: Run[Any], principal: Principal | None, name: str) -> bool:
        """Whether the tool of that name is not there for `principal`."""
        return self.policy.concerns(principal) and not self.policy.could_have(principal, self.tool(running, name))

    # What a request needs

    def tool(self, running: Run[Any], name: str) -> frozenset[str]:
        """What a call of the tool of that name needs."""
        found = running.features.tools.get(name)
        return self.policy.of_tool(name, None if found is None else found.options)

    def resource(self, _running: Run[Any], uri: str) -> frozenset[str]:
        """What it needs to read there."""
        return self.policy.of_resource(uri)

    def prompt(self, _running: Run[Any], name: str) -> frozenset[str]:
        """What the prompt of that name needs."""
        return self.policy.of_prompt(name)

    def _needed(self, running: Run[Any], name: str, params: Any) -> _Needed | None:
        """What the request of the method `name` with these params needs; None where there is nothing to guard."""
        if name == "tools/call":
            called = params.name
            # An unknown tool needs nothing: who asks is told that there is none, whatever the token allows.
            if called not in running.features.tools and _declares_tools(running):
                return None
            return _Needed(self.tool(running, called), lambda: UnknownTool(f"unknown tool: {called[:100]}"))
        if name == "prompts/get":
            return self._of_prompt(params.name)
        if name == "completion/complete":
            return self._of_reference(params)
        uri = getattr(params, "uri", None)
        # Pages of apps hold no data, and who may call a tool has to be shown its page.
        if name == "resources/read" and any(uri in one.open_resources for one in running.extensions):
            return None
        if isinstance(uri, str):
            return _Needed(self.policy.of_resource(uri), lambda: ResourceNotFound(uri))
        return _Needed(self.policy.of_others, lambda: MethodNotFound(f"method not found: {name[:100]}"))

    def _of_prompt(self, name: str) -> _Needed:
        return _Needed(self.policy.of_prompt(name), lambda: unknown_prompt(name))

    def _of_reference(self, params: CompleteParams) -> _Needed:
        if isinstance(params.ref, PromptReference):
            return self._of_prompt(params.ref.name)
        uri = params.ref.uri
        absent = f"unknown resource or template: {uri[:100]}"
        return _Needed(self.policy.of_resource(uri), lambda: InvalidParams(absent))

    # Who is let through

    def _guarded(self, name: str, handler: Handler) -> Handler:
        policy = self.policy

        def handle(running: Run[Any], context: Context[Any], params: Any) -> Awaitable[dict[str, Any]]:
            principal = context.peer.principal
            if policy.concerns(principal):
                needed = self._needed(running, name, params)
                if needed is not None:
                    # What the principal could never have is not there: to refuse it would say that it exists.
                    if not self.policy.could_have(principal, needed.scopes):
                        raise needed.absence()
                    self.policy.require(principal, needed.scopes)
                    # Should it become a task, whoever asks for that needs the same, and so does who comes back to
                    # the stream of its answer, or hears what it has subscribed to.
                    context.call.scopes |= needed.scopes
                    context.link.session.needed_scopes |= needed.scopes
            return handler(running, context, params)

        return handle

    def _listening(self, handler: Handler) -> Handler:
        """Of the resources that a stream is to tell of, those that are not there for its principal are left out, as
        are those that nobody has."""

        async def handle(running: Run[Any], context: Context[Any], params: ListenParams) -> dict[str, Any]:
            principal, policy = context.peer.principal, self.policy
            if policy.concerns(principal):
                wanted = params.notifications
                needed = {uri: policy.of_resource(uri) for uri in wanted.resource_subscriptions}
                there = [uri for uri, scopes in needed.items() if policy.could_have(principal, scopes)]
                # All at once: a client that is told one scope at a time sends its user to the browser for each.
                policy.require(principal, frozenset().union(*(needed[uri] for uri in there)))
                wanted = wanted.model_copy(update={"resource_subscriptions": there})
                params = params.model_copy(update={"notifications": wanted})
            return await handler(running, context, params)

        return handle

    def _listing(self, lists: Sequence[_List], handler: Handler) -> Handler:
        async def handle(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
            result = await handler(running, context, params)
            principal = context.peer.principal
            if self.policy.entitlement(principal) is None:
                return result
            for one in lists:
                result = self._shown(running, principal, result, one)
            # Another client of the same cache may be shown more, or less.
            return {**result, "cacheScope": "private"} if "cacheScope" in result else result

        return handle

    def _shown(
        self, running: Run[Any], principal: Principal | None, result: dict[str, Any], one: _List
    ) -> dict[str, Any]:
        def is_there(entry: Mapping[str, Any]) -> bool:
            return self.policy.could_have(principal, one.needs(self, running, str(entry[one.key])))

        return _replaced(result, one.path, lambda entries: [entry for entry in entries if is_there(entry)])


def _replaced(
    result: dict[str, Any], path: Sequence[str], change: Callable[[Iterable[Any]], list[Any]]
) -> dict[str, Any]:
    name, rest = path[0], path[1:]
    if name not in result:
        return result
    inner = result[name]
    return {**result, name: _replaced(inner, rest, change) if rest else change(inner)}


_LISTS: Mapping[str, Sequence[_List]] = {
    "tools/list": [_List(("tools",), "name", Access.tool)],
    "prompts/list": [_List(("prompts",), "name", Access.prompt)],
    "resources/list": [_List(("resources",), "uri", Access.resource)],
    "resources/templates/list": [_List(("resourceTemplates",), "uriTemplate", Access.resource)],
    "skills/list": [_List(("skills",), "uri", Access.resource)],
    "dialects/000/listTools": [_List(("value",), "name", Access.tool)],
    "dialects/000/listResources": [_List(("value",), "resourceId", Access.resource)],
    "dialects/002/initialize": [
        _List(("value", "tools"), "name", Access.tool),
        _List(("value", "prompts"), "name", Access.prompt),
    ],
}
