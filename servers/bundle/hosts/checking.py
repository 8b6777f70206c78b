"""The arguments of a server, checked as the server itself would, with absolute paths.

A client starts a server in a directory of its own choice, where a relative path would mean something else.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from shared.kit.extras import needs_extra
from shared.program.options import paths_after
from shared.program.run import Options, check_arguments
from shared.program.settings_file import placed
from shared.server.app import Server

from ..catalog import Argument, Entry

__all__ = ["Checked", "check"]

Fields = dict[str | None, FieldInfo]

_UNNAMED = None
_MODES = (":ro", ":rw")
# With these a server makes files that are not there.
_MAKING = ("--create", "--trace")


class Checked(NamedTuple):
    """Arguments that the server takes."""

    words: tuple[str, ...]
    secrets: frozenset[str]
    """Those of the words that nobody should see."""


def check(entry: Entry, words: Sequence[str], environment: Mapping[str, str], bundled: bool) -> Checked:
    """The arguments with absolute paths, each of which is there.

    A `bundled` server reads its options itself, with the variables of `environment`; of another's the catalog says
    which are paths. Raises ValueError for what the server would refuse, and for a path that is not there. Ends the
    program where a bundled server has no such option.
    """
    app = _app(entry) if bundled else None
    fields = {argument.option: _field(argument) for argument in entry.arguments} if app is None else _fields(app)
    unnamed = next((argument.metavar for argument in entry.arguments if argument.option is None), None) or "argument"
    secret = {argument.option for argument in entry.arguments if argument.secret}
    making = any(word.partition("=")[0] in _MAKING for word in words)
    done: list[str] = []
    hidden: set[str] = set()
    for option, before, value in _parts(words, fields):
        field = fields.get(option)
        word = before + (value if field is None else _checked(value, field, option or unnamed, making))
        done.append(word)
        hidden.update([word] if option in secret and value else [])
    if app is not None:
        check_arguments(app, done, environment)
    return Checked(tuple(done), frozenset(hidden))


def _app(entry: Entry) -> Server[Any]:
    try:
        app: Server[Any] = import_module(f"{entry.module}.server").app
    except ImportError as error:
        extra = f"; {needs_extra(entry.extra)}" if entry.extra else ""
        raise ValueError(f"{entry.name} can't be started here: {error}{extra}") from None
    return app


def _fields(app: Server[Any]) -> Fields:
    """The fields of a bundled server by their options."""
    named = {**app.settings_model.model_fields, **Options.model_fields}
    fields: Fields = {f"--{name.replace('_', '-')}": field for name, field in named.items()}
    for field in app.settings_model.model_fields.values():
        if isinstance(field.json_schema_extra, dict) and "positional" in field.json_schema_extra:
            fields[_UNNAMED] = field
    return fields


def _field(argument: Argument) -> FieldInfo:
    kinds: dict[str, type] = {"file": Path, "directory": Path, "boolean": bool}
    return FieldInfo(annotation=kinds.get(argument.type, str))


def _parts(words: Sequence[str], fields: Fields) -> Iterator[tuple[str | None, str, str]]:
    """Each word as the option it belongs to, what of it stays as it is, and the value."""
    option: str | None = _UNNAMED
    ended = False
    for word in words:
        name, equals, value = word.partition("=")
        if option is not _UNNAMED:
            yield option, "", word
            option = _UNNAMED
        elif word == "--" or ended or not word.startswith("--"):
            ended = ended or word == "--"
            yield ("--", word, "") if word == "--" else (_UNNAMED, "", word)
        elif equals:
            yield name, name + equals, value
        else:
            yield name, word, ""
            # One that is unknown may have a value, which then is left as it is.
            option = name if name not in fields or fields[name].annotation is not bool else _UNNAMED


def _checked(value: str, field: FieldInfo, source: str, making: bool) -> str:
    before = paths_after(field)
    if before is None or not value:
        return value
    whole: str = placed(value, field, Path.cwd(), source)
    text = whole[whole.find(before) + len(before) :]
    path = Path(text[:-3] if text.endswith(_MODES) else text)
    if path.is_absolute() and not path.exists() and not (making and path.parent.is_dir()):
        raise ValueError(f"{source}: {path} does not exist")
    return whole
