"""Elicitation on the terminal: asks the user for the fields of a form, one after another, or to visit a link.

Without a terminal, such requests of the server are declined. Sampling and roots are not supported.
"""

import textwrap
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from shared.client.options import ClientOptions
from shared.client.schemas.schema_cost import UnusableSchema
from shared.client.schemas.schemas import CheckedSchema
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitForm, ElicitUrl
from shared.text import plain

from .display import remove_controls
from .exit_codes import Misuse
from .line_input import ask, has_terminal, write_line
from .parameters import Parameter, as_text, parameters_of
from .session import Session

Pause = Callable[[], AbstractContextManager[None]]
"""Hides other output, such as a progress bar, during a block."""

_BOUNDS = (("minimum", "from"), ("maximum", "to"), ("minLength", "at least"), ("maxLength", "at most"))


class _Declined(Exception):
    """The user has declined to answer."""


def interactive_options(session: Session, pause: Pause = nullcontext) -> ClientOptions:
    """Return the options of a client that asks the user what the server requests."""

    def log(level: str, _: str | None, data: Any) -> None:
        session.say(f"{level}: {as_text(data)}")

    return ClientOptions(
        elicit=partial(_elicit, session, pause),
        elicit_url=partial(_elicit, session, pause),
        on_log=log if session.is_verbose else None,
        log_level="debug" if session.is_verbose else None,
    )


async def _elicit(session: Session, pause: Pause, request: ElicitForm | ElicitUrl) -> ElicitResult:
    """Answer `elicitation/create` (2025-11-25, Elicitation)."""
    if not has_terminal():
        session.say(f"the server asks: {request.message}; declined, because there is no terminal to ask in")
        return ElicitResult(action="decline")
    with pause():
        write_line(f"The server asks: {remove_controls(request.message)}")
        try:
            if isinstance(request, ElicitUrl):
                # The link may be harmful, so the user has to open it.
                write_line(f"  {plain(request.url)}\nOpen it in a browser where you trust it.")
                await _agree("Continue?")
                return ElicitResult(action="accept")
            return ElicitResult(action="accept", content=await fill_in(request.requested_schema))
        except _Declined:
            write_line("declined")
            return ElicitResult(action="decline")


async def _agree(question: str) -> None:
    """Ask the user a question. Raises _Declined for any answer except yes."""
    if (await ask(f"{question} [y/N] ") or "").lower() not in ("y", "yes"):
        raise _Declined


async def fill_in(schema: Any) -> dict[str, Any]:
    """Ask the user for each field of a form; return the values by name. Raises _Declined if the user declines."""
    content: dict[str, Any] = {}
    parameters = parameters_of(schema)
    if not parameters:
        # A form without fields only asks for consent, which the user has to give.
        await _agree("Agree?")
        return content
    write_line("(an empty line takes the value in brackets, or none; Ctrl+D declines)")
    for parameter in parameters.values():
        value = await _ask_for(parameter)
        if value is not None:
            content[parameter.name] = value
    return content


async def _ask_for(parameter: Parameter) -> Any:
    """Ask the user for one field and return its value; None if the user leaves it out. Raises _Declined."""
    many = parameter.items if "array" in parameter.types else None
    described = parameter.description and parameter.description != parameter.name
    label = f"{parameter.name}: {parameter.description}" if described else parameter.name
    write_line("\n".join(textwrap.wrap(plain(f"- {label}"), 79, subsequent_indent="  ")))
    choices = many or parameter
    for number, title in enumerate(choices.titles, 1):
        write_line(f"  {number}  {plain(title)}")
    default, shown = parameter.default, ""
    if default is not None:
        parts: Sequence[Any] = default if isinstance(default, list) else [default]
        words = [as_text(value) if not isinstance(value, bool) else "yes" if value else "no" for value in parts]
        shown = f" [{plain(', '.join(words))}]"
    while True:
        line = await ask(f"  {plain(_hint(parameter, many))}{shown}: ")
        if line is None:
            raise _Declined
        if not line and default is not None:
            return default
        if not line and not parameter.required:
            return None
        try:
            if not line:
                raise Misuse("this value is required")
            if many is None:
                return _check(parameter, _choose(parameter, line))
            values = [_choose(many, part.strip()) for part in line.split(",") if part.strip()]
            return _check(parameter, values)
        except Misuse as error:
            write_line(f"  {plain(str(error))}")


def _hint(parameter: Parameter, many: Parameter | None) -> str:
    if many is not None:
        return "numbers, separated by commas" if many.titles else "values, separated by commas"
    if parameter.titles:
        return "number"
    if parameter.types == {"boolean"}:
        return "yes or no"
    bounds = [f"{word} {parameter.schema[key]}" for key, word in _BOUNDS if key in parameter.schema]
    form = parameter.schema.get("format")
    return " ".join([form if isinstance(form, str) else parameter.kind, *bounds])


def _choose(parameter: Parameter, text: str) -> Any:
    """Return the choice whose number or title is `text`, or the value of `text` for the parameter. Raises Misuse."""
    if text.isdecimal() and 1 <= int(text) <= len(parameter.titles):
        return parameter.choices[int(text) - 1]
    if text in parameter.titles:
        return parameter.choices[parameter.titles.index(text)]
    if parameter.types == {"boolean"} and text.lower() in ("y", "n"):
        return text.lower() == "y"
    return parameter.read([text])


def _check(parameter: Parameter, value: Any) -> Any:
    """Return the value if it is valid: an invalid form would make the call fail. Raises Misuse with the reason."""
    try:
        fault = CheckedSchema(dict(parameter.schema), form=True).find_error(value)
    except UnusableSchema:
        return value  # the server has to check it
    if fault is not None:
        raise Misuse(fault[1])
    return value
