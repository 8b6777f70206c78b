"""What a run of a server is made of, and what a lifespan sees and changes of it while it is opened.

    Declaration ──▶ prepare: a `Run` with features, changes, hooks, and `Calls`, whose work is a `Dispatch`
                ──▶ the lifespan: its state ──▶ the extensions: theirs ──▶ peers may come

Nobody else knows all of these: handlers, extensions, telemetry and transports see the `Run`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from ..contracts import Blobs
from ..errors import DeclarationError
from ..protocol.identity import Identity, Span
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
from .handlers.core import CORE
from .handlers.dispatch import Dispatch
from .run import Run

State = TypeVar("State")


def prepare(
    server: Declaration[State], settings: Any, limits: Limits, budget: CallLimits, added: Sequence[Extension[Any]]
) -> Run[State]:
    """A run that has all that was declared, and the `added` extensions, and serves nobody yet. Raises
    DeclarationError where these do not go together."""
    run = Run(server, settings)
    _extend(run, CORE)
    run.features.include(server)
    for extension in (*server.extensions, *added):
        _extend(run, extension)
    for tool in run.features.tools.all():
        if tool.options.task is not None and all(extension.name != TASKS for extension in run.extensions):
            raise DeclarationError(f"tool {tool.name!r} may run as a task: give the server the extension `tasks()`")
    changes = run.changes
    changes.on_subscribe = server.subscribe
    if (unsubscribe := server.unsubscribe) is not None:
        changes.on_unsubscribe = lambda key: unsubscribe(run, key)
    if (wanted := server.wanted) is not None:
        changes.on_wanted = lambda: wanted(run)
    run.calls = Calls(limits, budget, run.hooks, Dispatch(run, budget))
    return run


def _extend(run: Run[Any], extension: Extension[Any]) -> None:
    if any(one.name == extension.name for one in run.extensions):
        raise DeclarationError(f"there is an extension {extension.name!r} already")
    run.features.include(extension)
    run.extensions.append(extension)


class Opening:
    """What a lifespan sees of the run that it opens."""

    def __init__(self, run: Run[Any]) -> None:
        self._run = run

    @property
    def settings(self) -> Any:
        """The settings of this run: an instance of the server's model."""
        return self._run.settings

    @property
    def changes(self) -> Changes:
        """Where changes are told."""
        return self._run.changes

    @property
    def conditions(self) -> Conditions:
        """Where it is said what keeps this run from working as its user expects."""
        return self._run.conditions

    @property
    def features(self) -> Features[Any]:
        """What this run offers. It may be changed as long as the run lasts; say so by `changes`."""
        return self._run.features

    @property
    def limits(self) -> Limits:
        """What one peer may take."""
        return self._run.calls.limits

    @property
    def page_size(self) -> int:
        """How many entries a page of a list has."""
        return self._run.server.page_size

    @property
    def signer(self) -> Signer:
        """What signs the cursors of lists."""
        return self._run.signer

    @property
    def blobs(self) -> Blobs | None:
        """What its replicas keep for each other, once the lifespan has yielded; None where it is alone."""
        return self._run.replication.blobs()

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """The addresses and ports that the HTTP transport listens on, once it does."""
        return self._run.hooks.endpoints

    def describe(
        self,
        capabilities: Mapping[str, Any],
        instructions: str | None,
        info: Mapping[str, Any] | None = None,
        *,
        spans: Mapping[tuple[str, ...], Span] | None = None,
        log_level: LogLevel | None = None,
    ) -> None:
        """Has those who come from now on be told these capabilities and instructions, and as the server's name and
        version `info`, in place of what is declared. It may be said again. `spans` is as in `Identity`; `log_level`
        is the mildest that they get before they ask for one, where it is not the server's."""
        server, standing = self._run.server, self._run.conditions.standing
        implementation = server.implementation if info is None else _implementation(info)
        level = log_level or server.log_level
        self._run.present(Identity(implementation, instructions, dict(capabilities), spans or {}, level, standing))

    def greet(self, greeter: Callable[[Connection], None]) -> None:
        """Has `greeter`, which neither waits nor raises, hear of each client that has shaken hands."""
        self._run.hooks.greeters.append(greeter)

    def stand_for(self, is_there: Callable[[], bool]) -> None:
        """Says that this run stands for something elsewhere, of which `is_there` tells whether it can be reached; it
        neither waits nor raises."""
        self._run.hooks.is_there = is_there

    def extend(self, extension: Extension[Any]) -> None:
        """Has this run speak `extension` as well, which must be said before the lifespan yields. Raises
        DeclarationError for what there is already."""
        _extend(self._run, extension)


def _implementation(info: Mapping[str, Any]) -> Implementation:
    """What another server calls itself, as far as it is well formed."""
    try:
        return Implementation.model_validate(info)
    except ValidationError:
        name, version = (str(info.get(key) or "unknown")[:200] for key in ("name", "version"))
        return Implementation(name=name, version=version)
