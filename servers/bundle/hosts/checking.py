"""Validates a server's arguments with the server's own checks, and makes their paths absolute.

Clients start servers in different directories, so a relative path would mean another file in each.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from servers.catalog import Entry
from shared.program.messages import missing_extra_message
from shared.program.run import Options, read_arguments
from shared.program.settings.command_line import read_command_line
from shared.program.settings.options import option_spellings, paths_after, positional_field
from shared.program.settings.settings_file import make_absolute
from shared.server.server import Server

HIDDEN = "…"
Fields = dict[str | None, FieldInfo]

_UNNAMED = None
_MODES = (":ro", ":rw")
# With these options, a server creates missing files.
_CREATING_OPTIONS = ("--create", "--trace")


class CheckedArguments(NamedTuple):
    """Arguments that the server accepts, with absolute paths."""

    words: tuple[str, ...]
    secrets: frozenset[str]
    """The arguments that must not be displayed."""


def check(entry: Entry, words: Sequence[str], environment: Mapping[str, str], bundled: bool) -> CheckedArguments:
    """Return the arguments `words` with absolute paths, after checking that these exist.

    If `bundled` is true, the server itself reads the arguments, with the variables in `environment`; for any other
    server, only the catalog shows which arguments are paths. Raises ValueError for arguments that the server would
    reject, and for a missing path. Exits the program for an unknown option of a bundled server.
    """
    app = _app(entry) if bundled else None
    fields: Fields
    if app is None:
        kinds: dict[str, type] = {"file": Path, "directory": Path}
        options = entry.spellings()
        fields = {item.option: FieldInfo(annotation=kinds.get(item.type, str)) for item in entry.arguments}
    else:
        own = {**app.settings_model.model_fields, **Options.model_fields}
        options, positional = option_spellings(own), positional_field(own)
        fields = {_UNNAMED if name == positional else name: field for name, field in own.items()}
    unnamed = next((argument.metavar for argument in entry.arguments if argument.option is None), None) or "argument"
    secret = {argument.option for argument in entry.arguments if argument.secret}
    line = read_command_line(words, options)
    faulty_indexes = {fault.word for fault in line.errors}
    option_indexes = faulty_indexes.union(item.first for item in line.values if item.name is not None)
    given_options = {words[number].partition("=")[0] for number in option_indexes}
    if "--transport" in given_options:
        raise ValueError(
            "omit --transport: a client uses stdio with a server that it starts; pass --url for one that is running"
        )
    absolute_words, hidden = list(words), set[str]()
    for name, value, first, index, start in line.values:
        option = unnamed if name is None else words[first].partition("=")[0]
        field = fields.get(name)
        # Don't change the word after an unknown option, which may be its value.
        if (
            field is not None
            and paths_after(field) is not None
            and (name is not None or index - 1 not in faulty_indexes)
        ):
            absolute_value = _absolute_value(
                value, field, option, may_create=not given_options.isdisjoint(_CREATING_OPTIONS)
            )
            absolute_words[index] = words[index][:start] + absolute_value
        hidden.update([absolute_words[index]] if value and (None if name is None else option) in secret else [])
    # The word after it was not read as its value because it looks like an option, but it may be the secret.
    for number, _ in line.errors:
        hidden.update(words[number + 1 : number + 2] if words[number] in secret else [])
    if app is not None:
        read_arguments(app, app.implementation.name, absolute_words, environment)
    return CheckedArguments(tuple(absolute_words), frozenset(hidden))


def public_arguments(entry: Entry, words: Sequence[str]) -> list[str] | None:
    """Return the arguments for display, with `HIDDEN` instead of secrets; None if one is unknown, since it may be a
    secret."""
    line = read_command_line(words, {**option_spellings(Options.model_fields), **entry.spellings()})
    if line.errors:
        return None
    secret = {argument.option for argument in entry.arguments if argument.secret}
    shown = list(words)
    for name, _, first, index, start in line.values:
        if (None if name is None else words[first].partition("=")[0]) in secret:
            shown[index] = words[index][:start] + HIDDEN
    return shown


def _app(entry: Entry) -> Server[Any]:
    try:
        app: Server[Any] = import_module(f"{entry.module}.server").app
    except ImportError as error:
        extra = f"; {missing_extra_message(entry.extra)}" if entry.extra else ""
        raise ValueError(f"{entry.name} can't be started here: {error}{extra}") from None
    return app


def _absolute_value(value: str, field: FieldInfo, source: str, *, may_create: bool) -> str:
    prefix = paths_after(field)
    if prefix is None or not value:
        return value
    absolute: str = make_absolute(value, field, Path.cwd(), source)
    text = absolute[absolute.find(prefix) + len(prefix) :]
    # Remove the mode at the end, which has three characters.
    path = Path(text[:-3] if text.endswith(_MODES) else text)
    if path.is_absolute() and not path.exists() and not (may_create and path.parent.is_dir()):
        raise ValueError(f"{source}: {path} does not exist")
    return absolute
