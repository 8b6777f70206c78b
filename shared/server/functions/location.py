"""The file and line of a declaration in its author's code, for error messages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from traceback import walk_stack
from types import FrameType
from typing import Any

from ...errors import DeclarationError

_OWN_PACKAGES = frozenset({__name__.partition(".")[0], "servers"})


@contextmanager
def locate_errors(function: Any) -> Iterator[None]:
    """Prefix each DeclarationError in the block with a file and line: those where `function` is defined or, if it is
    not a function, those of the author's code that is running."""
    try:
        yield
    except DeclarationError as error:
        code, author = getattr(unwrap(function), "__code__", None), find_author()
        if code is not None:
            position = f"{code.co_filename}:{code.co_firstlineno}"
        elif author is not None:
            position = f"{author.f_code.co_filename}:{author.f_lineno}"
        else:
            raise
        raise DeclarationError(f"{position}: {error}") from error.__cause__


def find_author() -> FrameType | None:
    """Return the innermost frame that is not in this package: the author's code. None if there is none."""
    own_packages = {*_OWN_PACKAGES, "contextlib"}
    frames = (frame for frame, _ in walk_stack(None))
    return next(
        (frame for frame in frames if frame.f_globals.get("__name__", "").partition(".")[0] not in own_packages), None
    )


def is_own(function: Callable[..., Any]) -> bool:
    """Return True if `function` is in this package, whose declarations are checked by tests, not at each start."""
    return getattr(function, "__module__", "").partition(".")[0] in _OWN_PACKAGES
