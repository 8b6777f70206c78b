"""Completion of the arguments of prompts and of the variables of resource templates."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from ..errors import DeclarationError
from ..protocol.types.prompts import CompleteParams, PromptReference
from .dispatch.context import Context

MAX_VALUES = 100
"""Maximum number of values in one result (2025-11-25, Utilities, Completion)."""

Completer = Callable[[Context[Any], str, dict[str, str]], Awaitable[Iterable[str]]]
"""A function that completes one argument. It accepts the context, the text typed so far and the arguments already
set, and returns the possible values, best first."""


class Completions:
    """The completers of a server."""

    def __init__(self) -> None:
        self._completers: dict[tuple[str, str, str], Completer] = {}

    def __len__(self) -> int:
        return len(self._completers)

    def include(self, other: "Completions") -> None:
        """Add all completers of `other`."""
        self._completers.update(other.all())

    def all(self) -> dict[tuple[str, str, str], Completer]:
        """Return all completers, by the kind ("prompt" or "resource"), the name and the argument completed."""
        return dict(self._completers)

    def add(self, kind: str, name: str, argument: str, completer: Completer) -> None:
        """Add a completer for an argument of the prompt `name`, or for a variable of the resource template `name`.
        Raises DeclarationError for another `kind`."""
        if kind not in ("prompt", "resource"):
            raise DeclarationError(f"only a 'prompt' or a 'resource' can be completed, not a {kind!r}")
        self._completers[kind, name, argument] = completer

    async def complete(self, context: Context[Any], params: CompleteParams) -> dict[str, Any]:
        """Return the result of `completion/complete`, which has no values if the argument has no completer."""
        ref = params.ref
        key = ("prompt", ref.name) if isinstance(ref, PromptReference) else ("resource", ref.uri)
        completer = self._completers.get((*key, params.argument.name))
        if completer is None:
            return completion([], 0)
        values = list(await completer(context, params.argument.value, params.context.arguments))
        return completion(values, len(values))


def completion(values: Sequence[str], total: int) -> dict[str, Any]:
    """Return a result of `completion/complete` with the first of these `values`; `total` is the number of all."""
    first_values = list(values[:MAX_VALUES])
    return {"completion": {"values": first_values, "total": total, "hasMore": total > len(first_values)}}
