"""The assembly of a run, and `Opening`, the interface of a run to its lifespan.

    Declaration ──▶ prepare: a `Run` with features, changes, hooks, and `Calls` with a `Dispatch`
       ──▶ the lifespan yields the state ──▶ the extensions yield their values ──▶ peers may connect

Only this module knows all these components: handlers, extensions, telemetry and transports use the `Run`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from ..contracts import Blobs
from ..errors import DeclarationError
from ..protocol.identity import Audience, Identity
from ..protocol.signing import Signer
from ..protocol.types.base import Implementation
from ..protocol.types.client import LogLevel
from ..protocol.types.tasks import TASKS
from .declaration import Declaration
from .dispatch.calls import Calls
from .dispatch.changes import Changes
from .dispatch.conditions import Conditions
from .dispatch.connection import Connection
from .dispatch.limits import CallLimits, Limits
from .extension import Extension
from .features import Features
from .functions.location import locate_errors
from .handlers.core import CORE
from .handlers.dispatch import Dispatch
from .run import Run

State = TypeVar("State")


def prepare(
    server: Declaration[State], settings: Any, limits: Limits, budget: CallLimits, added: Sequence[Extension[Any]]
) -> Run[State]:
    """Return a run of `server`, with the extensions `added` by the program, to which no peers can connect yet. Raises
    DeclarationError if features conflict."""
    run = Run(server, settings)
    _extend(run, CORE)
    run.features.include(server)
    for extension in (*server.extensions, *added):
        _extend(run, extension)
    for tool in run.features.tools.all():
        if tool.options.task is not None and all(extension.name != TASKS for extension in run.extensions):
            with locate_errors(tool.function.declared):
                raise DeclarationError(
                    f"tool {tool.name!r} may run as a task: give the server the extension `tasks()`"
                )
    _check_completions(run.features)
    changes = run.changes
    changes.on_subscribe = server.subscribe
    if (unsubscribe := server.unsubscribe) is not None:
        changes.on_unsubscribe = lambda key: unsubscribe(run, key)
    if (on_wanted := server.wanted) is not None:
        changes.on_wanted = lambda: on_wanted(run)
    run.calls = Calls(limits, budget, run.hooks, Dispatch(run, budget))
    return run


def _check_completions(features: Features[Any]) -> None:
    """Raise DeclarationError if a completer is for an argument that does not exist."""
    prompts = {prompt.name: prompt.function.names() for prompt in features.prompts.all()}
    templates = {resource.uri: resource.template.names for resource in features.resources.all()}
    for (kind, name, argument), completer in features.completions.all().items():
        declared: Mapping[str, Sequence[str]] = prompts if kind == "prompt" else templates
        if kind == "prompt" and features.prompts.source is not None and name not in declared:
            continue
        with locate_errors(completer):
            if name not in declared:
                raise DeclarationError(f"@completes: there is no {kind} {name!r}; available: {', '.join(declared)}")
            if argument not in declared[name]:
                names = ", ".join(declared[name])
                raise DeclarationError(
                    f"@completes: {kind} {name!r} has no argument {argument!r}; available: {names}"
                )


def _extend(run: Run[Any], extension: Extension[Any]) -> None:
    if any(other.name == extension.name for other in run.extensions):
        raise DeclarationError(f"there is already an extension {extension.name!r}")
    run.features.include(extension)
    run.extensions.append(extension)


class Opening:
    """What a lifespan can see and change of the run that it opens."""

    def __init__(self, run: Run[Any]) -> None:
        self._run = run

    @property
    def settings(self) -> Any:
        """The settings of this run: an instance of the server's model."""
        return self._run.settings

    @property
    def changes(self) -> Changes:
        """The object with which to publish changes of lists and resources."""
        return self._run.changes

    @property
    def conditions(self) -> Conditions:
        """The object with which to report problems that prevent this run from working as its user expects."""
        return self._run.conditions

    @property
    def features(self) -> Features[Any]:
        """The features of this run, which may be changed at any time. Publish each change with `changes`."""
        return self._run.features

    @property
    def limits(self) -> Limits:
        """The limits of one peer."""
        return self._run.calls.limits

    @property
    def page_size(self) -> int:
        """The number of entries in a page of a list."""
        return self._run.server.page_size

    @property
    def signer(self) -> Signer:
        """The signer of the cursors of lists."""
        return self._run.signer

    @property
    def blobs(self) -> Blobs | None:
        """The store for data that replicas share; None if there are no replicas. It can be used after the lifespan
        has yielded."""
        return self._run.replication.blobs()

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """The addresses and ports on which the HTTP transport listens; empty before it does."""
        return self._run.hooks.endpoints

    def describe(
        self,
        capabilities: Mapping[str, Any],
        instructions: str | None,
        info: Mapping[str, Any] | None = None,
        *,
        audiences: Mapping[tuple[str, ...], Audience] | None = None,
        log_level: LogLevel | None = None,
    ) -> None:
        """Present these capabilities and instructions to clients that connect from now on, instead of the declared
        ones, and `info` as the name and version of the server. `audiences` is as in `Identity`; `log_level` is the
        lowest level of messages that clients receive before they set a level, by default the server's."""
        server, active = self._run.server, self._run.conditions.active
        implementation = server.implementation
        if info is not None:
            try:
                implementation = Implementation.model_validate(info)
            except ValidationError:
                name, version = (str(info.get(key) or "unknown")[:200] for key in ("name", "version"))
                implementation = Implementation(name=name, version=version)
        level = log_level or server.log_level
        identity = Identity(implementation, instructions, dict(capabilities), audiences or {}, level, active)
        self._run.replace_identity(identity)

    def on_handshake(self, callback: Callable[[Connection], None]) -> None:
        """Call `callback`, which neither waits nor raises, with each client that has completed the handshake."""
        self._run.hooks.handshake_callbacks.append(callback)

    def represent_remote(self, is_reachable: Callable[[], bool]) -> None:
        """Declare that this run forwards to a remote server. `is_reachable` returns True if that server can be
        reached, and neither waits nor raises."""
        self._run.hooks.is_reachable = is_reachable

    def extend(self, extension: Extension[Any]) -> None:
        """Add `extension` to this run, which is possible until the lifespan yields. Raises DeclarationError."""
        _extend(self._run, extension)
