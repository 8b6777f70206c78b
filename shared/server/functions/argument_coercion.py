"""Arguments converted to a form that their schema accepts, if the client has sent them in another form of the same
meaning.

1.0 is an integer to JSON Schema (2020-12, section 6.1.1), and some clients write every number so. Some hosts send an
array or an object as a string that holds its JSON. Only refused values are converted, so a string stays a string if
the schema accepts one.
"""

from collections.abc import Sequence
from typing import Any

from pydantic_core import ErrorDetails, from_json

_ARRAYS = {"list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"}
_OBJECTS = {"dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"}
"""The kinds of errors for which the schema requires an array, and those for which it requires an object."""


def coerce(arguments: Any, errors: Sequence[ErrorDetails]) -> bool:
    """Convert each refused value of `arguments` to its other form, in place. Return True if any has one."""
    changed = False
    for error in errors:
        value = _other_form(error["type"], error["input"])
        if value is not None:
            changed |= _replace(arguments, error["loc"], error["input"], value)
    return changed


def _other_form(kind: str, value: Any) -> Any:
    """Return the value in the required form, by the kind of the error; None if it has no such form."""
    if kind == "int_type":
        return int(value) if isinstance(value, float) and value.is_integer() else None
    expected = list if kind in _ARRAYS else dict if kind in _OBJECTS else None
    if expected is None or not isinstance(value, str):
        return None
    try:
        parsed = from_json(value, allow_inf_nan=False)
    except ValueError:
        return None
    return parsed if isinstance(parsed, expected) else None


def _replace(node: Any, location: Sequence[int | str], old: Any, new: Any) -> bool:
    """Replace `old` at the location by `new`. Return False if it is not there."""
    above: Any = None
    key: Any = None
    for part in location:
        # A part that leads nowhere is the name of the member of a union, which pydantic puts into the location.
        if isinstance(node, dict) if isinstance(part, str) else isinstance(node, list):
            try:
                above, key, node = node, part, node[part]
            except LookupError:
                continue
    if above is None or type(node) is not type(old) or node != old:
        return False
    above[key] = new
    return True
