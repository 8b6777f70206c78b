"""Defines the data types for prompts, independent of the format of their files."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

Role = Literal["user", "assistant"]
Syntax = Literal["jinja", "plain", "claude", "codex", "opencode", "vscode", "gemini"]
Value = str | int | float | bool


class Argument(NamedTuple):
    """An argument of a prompt."""

    name: str
    type: str = "string"
    """string, number, boolean, enum, file, url or list."""
    title: str | None = None
    description: str | None = None
    required: bool = False
    default: Any = None
    """The default value, which has the argument's type; None if there is none."""
    enum: tuple[str, ...] = ()
    """The allowed values, if the type is enum."""
    examples: tuple[str, ...] = ()


class Message(NamedTuple):
    """One message of a prompt."""

    role: Role
    kind: Literal["text", "image", "audio", "resource"]
    content: str
    """The text, written in the syntax of the prompt; or the path of a file in the library, relative to
    `Prompt.base`."""
    line: int = 1
    """The line of the prompt's file where the message begins."""


class Prompt(NamedTuple):
    """A prompt."""

    name: str
    description: str
    title: str | None = None
    arguments: tuple[Argument, ...] = ()
    """The arguments in the order in which clients ask for them: the required ones first."""
    tags: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    syntax: Syntax = "jinja"
    """The syntax of the texts: Jinja templates, text with the placeholders of a host, or plain text."""
    words: tuple[str, ...] = ()
    """The names of the arguments that are one word each, in the order in which a user types the words after the name
    of the command."""
    declared: bool = False
    """True if the front matter of a command declares its arguments, so that `$NAME` is a placeholder."""
    base: str = ""
    """The folder in the library to which paths of other files are relative; "" is the library itself."""
    hint: str = ""
    """The `argument-hint` in the front matter of a command, as written."""
    allowed_tools: tuple[str, ...] = ()
    """The permissions that a command or a skill requests from a host. This server does not use them."""
    notice: tuple[int, str] | None = None
    """The line and the description of a fault in the file. The prompt is served in spite of it."""


def order_arguments(arguments: Iterable[Argument]) -> tuple[Argument, ...]:
    """Return the arguments with the required ones first, and otherwise in the given order, since clients may pass
    values by position."""
    return tuple(sorted(arguments, key=lambda argument: not argument.required))
