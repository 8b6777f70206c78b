"""A prompt as plain values, whatever form its file has."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

Role = Literal["user", "assistant"]
Syntax = Literal["jinja", "plain", "claude", "codex", "opencode", "vscode", "gemini"]
Value = str | int | float | bool


class Argument(NamedTuple):
    """What a prompt is asked with."""

    name: str
    type: str = "string"
    """string, number, boolean, enum, file, url or list."""
    title: str | None = None
    description: str | None = None
    required: bool = False
    default: Any = None
    """A value of its type; None where there is none."""
    enum: tuple[str, ...] = ()
    """The values there are, of an enum."""
    examples: tuple[str, ...] = ()


class Message(NamedTuple):
    """One message of a prompt."""

    role: Role
    kind: Literal["text", "image", "audio", "resource"]
    content: str
    """Text: a template. Else: the path of a file of the library."""
    line: int = 1
    """Where it begins in its file."""


class Prompt(NamedTuple):
    """A prompt."""

    name: str
    description: str
    title: str | None = None
    arguments: tuple[Argument, ...] = ()
    """In the order that clients ask in: what is required first."""
    tags: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    syntax: Syntax = "jinja"
    """How texts are rendered: as templates of Jinja, with the placeholders of a host, or not at all."""
    words: tuple[str, ...] = ()
    """The arguments of a command that are the words after its name, in their order."""
    declared: bool = False
    """Whether the front matter of a command declares them, so that `$NAME` is a place for one."""
    base: str = ""
    """The folder within the library that paths of other files begin at; "" is the library itself."""
    hint: str = ""
    """The argument-hint of a command, as it is written."""
    allowed_tools: tuple[str, ...] = ()
    """What a command or a skill asks a host to allow. It means nothing to this server."""
    notice: tuple[int, str] | None = None
    """What is wrong with the file, which is served all the same, and on which line."""


def order_arguments(arguments: Iterable[Argument]) -> tuple[Argument, ...]:
    """The arguments with the required ones first and otherwise as written: what clients take by position."""
    return tuple(sorted(arguments, key=lambda one: not one.required))
