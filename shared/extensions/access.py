"""Access control: a request for which the principal lacks scopes is refused before its handler is called.

    server.open(extensions=[access(Policy("files", rules))])

A principal has the scopes of its token, up to those that the operator grants it. A tool, prompt or resource that
needs scopes which the operator does not grant does not exist for the principal: it is not listed, and its name is
unknown. If only the token lacks scopes, it is listed, and a request for it is refused with all required scopes, so
that the client can obtain another token (2026-07-28, Authorization, Scope Challenge Handling).
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from ..auth.policy import Policy
from ..errors import InvalidParams, McpError, MethodNotFound, ResourceNotFound, UnknownTool
from ..protocol.identity import Principal
from ..protocol.methods import FALLBACK, Method
from ..protocol.records import record
from ..protocol.types.prompts import PromptReference
from ..protocol.types.resources import ListenParams
from ..server.dispatch.context import Context
from ..server.extension import Extension
from ..server.features import AtOnce, Handler
from ..server.handlers.dispatch import call_tool
from ..server.prompts import unknown_prompt
from ..server.run import Run
from ..text import nearest

log = logging.getLogger("shared.access")

Answer = TypeVar("Answer")

ACCESS = "access"
"""The name of the extension."""

_UNGUARDED = frozenset({"resources/unsubscribe", "logging/setLevel"})
"""Methods that need no scopes."""
_TASKS = "tasks/"
"""The prefix of methods for tasks. They need the scopes of the call that became the task, which `tasks` checks."""
_DIALECTS = "dialects/"
"""The prefix of internal methods of dialects. They call methods of the protocol, which are guarded."""

_RequiredScopes = Callable[["Access", Run[Any], str], frozenset[str]]


@record
class _List:
    """A list in a result."""

    path: tuple[str, ...]
    """The path of the list in the result."""
    key: str
    """The field of an entry that contains its name or URI."""
    required_scopes: _RequiredScopes
    """Returns the scopes that the entry with that name or URI requires."""


@record
class _Requirement:
    """The scopes that a request requires for the tool, prompt or resource in its params."""

    scopes: frozenset[str]
    absence: Callable[[], McpError]
    """Returns the error that the request would get if the tool, prompt or resource did not exist."""


def access(policy: Policy) -> Extension[Any]:
    """Return the extension that enforces `policy` for every request."""
    guard = Access(policy)
    extension = Extension[Any](ACCESS, around=guard.around)
    extension.rank, extension.hides_tool = 1, guard.hides_tool
    extension.around_at_once = guard.around_at_once
    extension.scopes = partial(_list_scopes, policy)
    extension.lifespan = _RuleCheck(policy).check
    return extension


def _list_scopes(policy: Policy, run: Run[Any]) -> tuple[list[str], list[str]]:
    """Return all scopes that requests to the run may require, and those that a client should request first."""
    tools = [(tool.name, tool.options) for tool in run.features.tools.find_offered(run.settings)]
    # If the run forwards calls to another server, its tools are unknown here.
    other_scopes = frozenset() if _declares_tools(run) else policy.other_scopes
    return sorted({*policy.all_scopes(tools), *other_scopes}), sorted(policy.read_scopes)


def _declares_tools(run: Run[Any]) -> bool:
    handlers = run.features.handlers
    # With a fallback, the run forwards to another server. It forwards calls of tools too, in a handler around
    # `call_tool`.
    return handlers.get("tools/call") is call_tool and FALLBACK not in handlers


class _RuleCheck:
    """Warns the operator once about rules for tools that do not exist. Not errors, since tools may be added later."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._has_checked = False

    @asynccontextmanager
    async def check(self, run: Run[Any]) -> AsyncIterator[None]:
        """Check the rules, as the lifespan of the extension."""
        if not self._has_checked and _declares_tools(run):
            self._has_checked = True
            names = [tool.name for tool in run.features.tools.all()]
            for name in self._policy.rules.scopes:
                if ":" not in name and name not in names:
                    similar_name = nearest(name, names)
                    advice = "" if similar_name is None else f"; did you mean {similar_name!r}?"
                    log.warning("scopes: there is no tool %r in %s%s", name, self._policy.server, advice)
        yield


class Access:
    """Wraps the handlers of one server with checks of scopes."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def around(self, method: Method, handler: Handler) -> Handler:
        """Return a handler for `method` that checks the scopes of the principal."""
        name = method.handler
        if method.built_in or name in _UNGUARDED or name.startswith(_TASKS):
            return handler
        if (lists := _LISTS.get(name)) is not None:

            async def handle(run: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
                result = await handler(run, context, params)
                return self._filter_lists(context.peer.principal, run, result, lists)

            return handle
        if name.startswith(_DIALECTS):
            return handler
        return self._guard_listen(handler) if name == "subscriptions/listen" else self._guard(name, handler)

    def around_at_once(self, method: Method, handler: AtOnce) -> AtOnce:
        """Return a handler for `method` that answers at once, with the same checks."""
        lists = _LISTS.get(method.handler)
        if lists is None:
            return self._guard(method.handler, handler)

        def handle(run: Run[Any], context: Context[Any], params: Any) -> dict[str, Any] | None:
            result = handler(run, context, params)
            return None if result is None else self._filter_lists(context.peer.principal, run, result, lists)

        return handle

    def hides_tool(self, run: Run[Any], principal: Principal | None, name: str) -> bool:
        """Return True if the operator does not grant `principal` the scopes for the tool with that name."""
        return self.policy.restricts(principal) and not self.policy.allows(principal, self.scopes_of_tool(run, name))

    # Required scopes

    def scopes_of_tool(self, run: Run[Any], name: str) -> frozenset[str]:
        """Return the scopes that a call of the tool with that name requires."""
        tool = run.features.tools.get(name)
        return self.policy.scopes_of_tool(name, None if tool is None else tool.options)

    def scopes_of_resource(self, _run: Run[Any], uri: str) -> frozenset[str]:
        """Return the scopes that reading the resource `uri` requires."""
        return self.policy.scopes_of_resource(uri)

    def scopes_of_prompt(self, _run: Run[Any], name: str) -> frozenset[str]:
        """Return the scopes that the prompt with that name requires."""
        return self.policy.scopes_of_prompt(name)

    def _find_requirement(self, run: Run[Any], name: str, params: Any) -> _Requirement | None:
        """Return what a request for the method `name` with these params requires; None if it needs no check."""
        if name == "tools/call":
            tool = params.name
            # An unknown tool needs no check: the error is the same with any token.
            if tool not in run.features.tools and _declares_tools(run):
                return None
            return _Requirement(self.scopes_of_tool(run, tool), lambda: UnknownTool(f"unknown tool: {tool[:100]}"))
        if name == "prompts/get":
            return self._require_prompt(params.name)
        if name == "completion/complete":
            if isinstance(params.ref, PromptReference):
                return self._require_prompt(params.ref.name)
            uri = params.ref.uri
            message = f"unknown resource or template: {uri[:100]}"
            return _Requirement(self.policy.scopes_of_resource(uri), lambda: InvalidParams(message))
        uri = getattr(params, "uri", None)
        # The HTML pages of apps contain no data, and every client that may call a tool needs its page.
        if name == "resources/read" and any(uri in extension.open_resources for extension in run.extensions):
            return None
        if isinstance(uri, str):
            return _Requirement(self.policy.scopes_of_resource(uri), lambda: ResourceNotFound(uri))
        return _Requirement(self.policy.other_scopes, lambda: MethodNotFound(f"method not found: {name[:100]}"))

    def _require_prompt(self, name: str) -> _Requirement:
        return _Requirement(self.policy.scopes_of_prompt(name), lambda: unknown_prompt(name))

    # Guarded handlers

    def _guard(
        self, name: str, handler: Callable[[Run[Any], Context[Any], Any], Answer]
    ) -> Callable[[Run[Any], Context[Any], Any], Answer]:
        policy = self.policy

        def handle(run: Run[Any], context: Context[Any], params: Any) -> Answer:
            principal = context.peer.principal
            if policy.restricts(principal):
                requirement = self._find_requirement(run, name, params)
                if requirement is not None:
                    # What the operator does not grant is treated as nonexistent, since another error would reveal
                    # that it exists.
                    if not self.policy.allows(principal, requirement.scopes):
                        raise requirement.absence()
                    self.policy.require(principal, requirement.scopes)
                    # If the call becomes a task, requests for the task require these scopes too. So do clients that
                    # reconnect to the stream of the answer, or receive changes of their subscriptions.
                    context.call.scopes |= requirement.scopes
                    context.link.session.add_needed_scopes(requirement.scopes)
            return handler(run, context, params)

        return handle

    def _guard_listen(self, handler: Handler) -> Handler:
        """Return a handler that leaves out of a subscription the resources that do not exist for the principal."""

        async def handle(run: Run[Any], context: Context[Any], params: ListenParams) -> dict[str, Any]:
            principal, policy = context.peer.principal, self.policy
            if policy.restricts(principal):
                subscription = params.notifications
                scopes_by_uri = {uri: policy.scopes_of_resource(uri) for uri in subscription.resource_subscriptions}
                existing = [uri for uri, scopes in scopes_by_uri.items() if policy.allows(principal, scopes)]
                # The scopes of all resources are required in one error. If they were required one by one, the client
                # would send its user to the browser for each.
                policy.require(principal, frozenset().union(*(scopes_by_uri[uri] for uri in existing)))
                subscription = subscription.model_copy(update={"resource_subscriptions": existing})
                params = params.model_copy(update={"notifications": subscription})
            return await handler(run, context, params)

        return handle

    def _filter_lists(
        self, principal: Principal | None, run: Run[Any], result: dict[str, Any], lists: Sequence[_List]
    ) -> dict[str, Any]:
        """Return `result` with only those entries of `lists` that exist for `principal`."""
        if not self.policy.rules.principals:
            return result
        for list_ in lists:

            def exists(entry: Mapping[str, Any], list_: _List = list_) -> bool:
                return self.policy.allows(principal, list_.required_scopes(self, run, str(entry[list_.key])))

            result = _filter_list(result, list_.path, exists)
        # A cache must not give this list to other clients, for which more or fewer entries exist.
        return {**result, "cacheScope": "private"} if "cacheScope" in result else result


def _filter_list(
    result: dict[str, Any], path: Sequence[str], exists: Callable[[Mapping[str, Any]], bool]
) -> dict[str, Any]:
    """Return `result` with only those entries of the list at `path` for which `exists` returns True."""
    name, rest = path[0], path[1:]
    if name not in result:
        return result
    inner = result[name]
    return {**result, name: _filter_list(inner, rest, exists) if rest else [*filter(exists, inner)]}


_LISTS: Mapping[str, Sequence[_List]] = {
    "tools/list": [_List(("tools",), "name", Access.scopes_of_tool)],
    "prompts/list": [_List(("prompts",), "name", Access.scopes_of_prompt)],
    "resources/list": [_List(("resources",), "uri", Access.scopes_of_resource)],
    "resources/templates/list": [_List(("resourceTemplates",), "uriTemplate", Access.scopes_of_resource)],
    "skills/list": [_List(("skills",), "uri", Access.scopes_of_resource)],
    "dialects/000/listTools": [_List(("value",), "name", Access.scopes_of_tool)],
    "dialects/000/listResources": [_List(("value",), "resourceId", Access.scopes_of_resource)],
    "dialects/002/initialize": [
        _List(("value", "tools"), "name", Access.scopes_of_tool),
        _List(("value", "prompts"), "name", Access.scopes_of_prompt),
    ],
}
