"""Functions whose parameters are known at run time only, as of tools that an operator describes in a file."""

from collections.abc import Awaitable, Callable, Iterable
from inspect import Parameter, Signature
from typing import Any

from .context import Context

__all__ = ["signed"]


def signed(
    run: Callable[[Context[Any], dict[str, Any]], Awaitable[Any]],
    name: str,
    parameters: Iterable[Parameter],
    returns: Any,
) -> Callable[..., Any]:
    """A function called `name` with these keyword parameters, which has `run` do the work with the call's context and
    the arguments. It can be declared, and then is listed and checked, like any function that somebody wrote."""

    async def call(_context: Context[Any], **arguments: Any) -> Any:
        return await run(_context, arguments)

    taken = [Parameter("_context", Parameter.KEYWORD_ONLY, annotation=Context[Any]), *parameters]
    call.__name__ = name
    call.__signature__ = Signature(taken, return_annotation=returns)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in taken} | {"return": returns}
    return call
