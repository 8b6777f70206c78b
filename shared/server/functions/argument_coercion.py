"""Arguments in a form that their schema takes, where the client has sent them in another form of the same meaning.

1.0 is an integer to JSON Schema (2020-12, section 6.1.1), and some clients write every number so. Some hosts send an
array or an object as a string that holds its JSON. Only what was refused comes here, so a string stays a string
wherever the schema takes one.
"""

from collections.abc import Sequence
from typing import Any

from pydantic_core import ErrorDetails, from_json

_ARRAYS = {"list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"}
_OBJECTS = {"dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"}
"""The kinds of errors where the schema wants an array, and where it wants an object."""


def coerce(arguments: Any, errors: Sequence[ErrorDetails]) -> bool:
    """Put each value of the `arguments` that was refused into its other form, in place; whether any has one."""
    changed = False
    for error in errors:
        value = _other_form(error["type"], error["input"])
        if value is not None:
            changed |= _replace(arguments, error["loc"], error["input"], value)
    return changed


def _other_form(kind: str, value: Any) -> Any:
    """The value as what was wanted, by the kind of the error; None where it has no such form."""
    if kind == "int_type":
        return int(value) if isinstance(value, float) and value.is_integer() else None
    wanted = list if kind in _ARRAYS else dict if kind in _OBJECTS else None
    if wanted is None or not isinstance(value, str):
        return None
    try:
        parsed = from_json(value, allow_inf_nan=False)
    except ValueError:
        return None
    return parsed if isinstance(parsed, wanted) else None


def _replace(node: Any, location: Sequence[int | str], old: Any, new: Any) -> bool:
    """Put `new` in place of `old` at the location; whether it was there."""
    above: Any = None
    key: Any = None
    for part in location:
        # What leads nowhere is the name of the member of a union, which pydantic puts into the location.
        if isinstance(node, dict) if isinstance(part, str) else isinstance(node, list):
            try:
                above, key, node = node, part, node[part]
            except LookupError:
                continue
    if above is None or type(node) is not type(old) or node != old:
        return False
    above[key] = new
    return True
