"""The position of a declaration in its author's code, for errors about the declaration."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from typing import Any

from ...errors import DeclarationError

_OWN = frozenset({__name__.partition(".")[0], "servers"})


@contextmanager
def locating(function: Any) -> Iterator[None]:
    """Prefix errors in the declaration of a function with the author's file and line."""
    try:
        yield
    except DeclarationError as error:
        code = getattr(unwrap(function), "__code__", None)
        if code is None:
            raise
        raise DeclarationError(f"{code.co_filename}:{code.co_firstlineno}: {error}") from error.__cause__


def is_own(function: Callable[..., Any]) -> bool:
    """Return True for a function of this package, whose declarations are checked by tests instead of at each
    start."""
    return getattr(function, "__module__", "").partition(".")[0] in _OWN
