"""The type annotations of an author's function: their evaluation, and the kinds of values that they allow."""

from collections import abc
from collections.abc import Callable
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WrapValidator
from pydantic.fields import FieldInfo
from typing_extensions import Doc

from ...errors import DeclarationError
from ...protocol.types.content import Content
from ...protocol.types.tools import CallToolResult
from .location import find_author

_UNIONS = (Union, UnionType, Annotated)
_COLLECTIONS = (list, tuple, set, frozenset, abc.Sequence, abc.Set)
_CONTENT = (Content, CallToolResult)
_TEXT = (str, NoneType)
_NO_JSON = (bytes, bytearray, memoryview)
_VALIDATORS = (AfterValidator, BeforeValidator, PlainValidator, WrapValidator)


def evaluate(function: Callable[..., Any], what: str) -> dict[str, Any]:
    """Return the types of the parameters of a function by name, and that of its result as "return". Raises
    DeclarationError if a type contains a name that is not defined."""
    try:
        return get_type_hints(function, include_extras=True)
    except NameError:
        pass
    # The name may be local to a function that encloses the declared one. If annotations are strings, only the frame
    # of that function has it.
    author = find_author()
    try:
        return get_type_hints(function, localns=author.f_locals if author else None, include_extras=True)
    except NameError as error:
        reason = f"{error}; the types of a {what.partition(' ')[0]} are needed at runtime, also under TYPE_CHECKING"
        raise DeclarationError(f"{what}: {reason}") from error


def format_type(declared: Any) -> str:
    """Return a type as the author would write it."""
    return declared.__name__ if isinstance(declared, type) and not get_args(declared) else str(declared)


def name_of_argument(name: str, hint: Any, default: Any) -> str:
    """Return the name of the argument for the parameter `name`: the alias in `Field(alias=...)`, or else `name`."""
    fields = [default, *(get_args(hint)[1:] if get_origin(hint) is Annotated else ())]
    aliases = (part.validation_alias for part in fields if isinstance(part, FieldInfo))
    return next((alias for alias in aliases if isinstance(alias, str)), name)


def remove_validators(hint: Any) -> Any:
    """Return a type without validators; the same object if it has none."""

    def change(part: Any) -> Any:
        if get_origin(part) is not Annotated:
            return part
        others = [item for item in part.__metadata__ if not isinstance(item, _VALIDATORS)]
        if len(others) == len(part.__metadata__):
            return part
        return Annotated[part.__origin__, *others] if others else part.__origin__

    return _map_parts(hint, change)


def replace_iterables(hint: Any) -> Any:
    """Return the type of an argument with `list` instead of `Iterable`. pydantic would validate the items of an
    iterable only when the function reads them."""

    def change(part: Any) -> Any:
        return GenericAlias(list, get_args(part)) if get_origin(part) is abc.Iterable else part

    return _map_parts(hint, change)


def add_descriptions(hint: Any) -> Any:
    """Return the type of an argument with a string or a `Doc` (PEP 727) in `Annotated` as its description, which
    pydantic would ignore."""
    if get_origin(hint) is not Annotated:
        return hint
    texts = (part.documentation if isinstance(part, Doc) else part for part in hint.__metadata__)
    parts = (Field(description=part) if isinstance(part, str) else part for part in texts)
    return Annotated[hint.__origin__, *parts]


def _map_parts(hint: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to all parts of a type, the inner parts first, and then to the type. Return the result; the same
    object if nothing has changed."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner = _map_parts(parts[0], change)
        hint = hint if inner is parts[0] else Annotated[inner, *hint.__metadata__]
    elif parts and origin in (*_UNIONS, dict, *_COLLECTIONS):
        inner_parts = [_map_parts(part, change) for part in parts]
        if any(new is not old for new, old in zip(inner_parts, parts, strict=True)):
            hint = (Union if origin in _UNIONS else origin)[tuple(inner_parts)]
    return change(hint)


def resolve_alias(hint: Any) -> Any:
    """Return the type behind a `NewType` or a `type` statement."""
    while True:
        inner = getattr(hint, "__supertype__", getattr(hint, "__value__", hint))
        if inner is hint or isinstance(hint, type):
            return hint
        hint = inner


def is_data(hint: Any) -> bool:
    """Return True if values of this type are data, which is sent as structured content, with an output schema."""
    hint = resolve_alias(hint)
    base = get_origin(hint) or hint
    if base in _UNIONS:
        parts = get_args(hint)[:1] if base is Annotated else get_args(hint)
        return not _may_be_content(hint) and any(is_data(part) for part in parts)
    if base in _COLLECTIONS:
        return not any(_may_be_content(part) for part in get_args(hint))
    return isinstance(base, type) and base not in (Any, object) and not issubclass(base, _TEXT + _CONTENT + _NO_JSON)


def is_sendable(hint: Any) -> bool:
    """Return True if values of this type can be sent, as content or as data."""
    hint = resolve_alias(hint)
    base = get_origin(hint) or hint
    if base in (*_UNIONS, list, tuple, Literal):
        parts = get_args(hint)[:1] if base is Annotated else get_args(hint)
        return is_data(hint) or all(is_sendable(part) if base is not Literal else True for part in parts)
    return is_data(hint) or base in (Any, ...) or (isinstance(base, type) and issubclass(base, _TEXT + _CONTENT))


def is_content(value: Any, hint: Any) -> bool:
    """Return True if `value` has the type `hint`, which consists of text and content blocks."""
    base, parts = get_origin(hint) or hint, get_args(hint)
    if base is Literal:
        return value in parts
    if base in _UNIONS:
        return any(is_content(value, part) for part in (parts[:1] if base is Annotated else parts))
    if base is tuple and Ellipsis not in parts and parts:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(is_content, value, parts))
    if base in (list, tuple) and isinstance(value, base):
        return all(is_content(item, part) for item in value for part in parts[:1])
    if base is Any or base is None:
        return base is Any or value is None
    return isinstance(value, base) if isinstance(base, type) else is_content(value, resolve_alias(base))


def is_one_of(hint: Any, types: tuple[type, ...], containing: tuple[Any, ...] = ()) -> bool:
    """Return True if values of the type `hint` have one of `types`, or are lists of such values, or if the type does
    not determine that. `containing` is the aliases inside which the type occurs; a recursive alias is one of them."""
    if any(hint is name for name in containing):
        return True
    name, hint = hint, resolve_alias(hint)
    containing = containing if hint is name else (*containing, name)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return all(isinstance(part, types) for part in parts)
    if parts and origin in (*_UNIONS, list, tuple):
        return all(is_one_of(part, types, containing) for part in (parts[:1] if origin is Annotated else parts))
    return hint in (None, Any, object, list, tuple, ...) or (isinstance(hint, type) and issubclass(hint, types))


def _may_be_content(hint: Any) -> bool:
    """Return True if values of this type are, or may be, content blocks."""
    hint = resolve_alias(hint)
    if get_origin(hint) in _UNIONS:
        return any(_may_be_content(part) for part in get_args(hint))
    return hint is Any or (isinstance(hint, type) and issubclass(hint, _CONTENT))
