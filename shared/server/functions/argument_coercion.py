"""Converts arguments that their schema refuses, if the client has sent them in another form with the same meaning.

Some clients write every number as a float; 1.0 is an integer in JSON Schema (2020-12, section 6.1.1). Many hosts send
the JSON of a value as a string (anthropics/claude-code#29104, github/github-mcp-server#2044), or null or
"" instead of leaving an argument out (danny-avila/LibreChat#11905, langflow-ai/langflow#8059, can1357/oh-my-pi#2981),
or they add arguments of their own.
Only refused values are converted, so a string remains one if the schema accepts it.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from types import NoneType
from typing import Any

from pydantic_core import ErrorDetails, from_json

_ARRAYS = {"list_type", "tuple_type", "set_type", "frozen_set_type", "deque_type", "iterable_type"}
_OBJECTS = {"dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"}
"""The kinds of pydantic's errors for values that should be an array, and for those that should be an object."""
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_ARRAYS, (list, NoneType)),
    **dict.fromkeys(_OBJECTS, (dict, NoneType)),
    "named_tuple_type": (list, dict, NoneType),
    "int_type": (int, float, NoneType),
    "float_type": (int, float, NoneType),
    "bool_type": (bool, NoneType),
    "none_required": (NoneType,),
    # Without NoneType, since the choices may be strings, such as "null".
    "literal_error": (int, float, bool),
    "enum": (int, float, bool),
}
"""The Python types that a converted value may have, by the kind of the error."""
_HOST_ARGUMENTS = {"wait_for_previous", "task_progress", "random_string"}
"""The arguments that hosts add: Gemini CLI 0.61 the first, Cline the second (cline/cline#8256), and Cursor the third,
to calls of tools without arguments."""


def coerce(arguments: Any, errors: Sequence[ErrorDetails], is_optional: Callable[[str], bool]) -> bool:
    """Convert the refused values of `arguments`, in place, and remove those that mean that an argument was left out.

    Return True if anything has changed. `is_optional` returns True if the argument with that name may be left out.
    """
    changed = False
    for error in errors:
        name = str(error["loc"][0]) if error["loc"] else ""
        if error["type"] == "extra_forbidden":
            is_left_out = len(error["loc"]) == 1 and name in _HOST_ARGUMENTS
        else:
            is_left_out = arguments.get(name, error) in (None, "") and is_optional(name)
        if is_left_out:
            changed |= arguments.pop(error["loc"][0], error) is not error
            continue
        value = _convert(error["type"], error["input"])
        if value is not error["input"]:
            changed |= _replace(arguments, error["loc"], error["input"], value)
    return changed


def _convert(kind: str, value: Any) -> Any:
    """Return `value` in the form that an error of this kind requires; unchanged if there is no such form."""
    expected, converted = _TYPES.get(kind, ()), value
    if expected and isinstance(value, str):
        try:
            converted = from_json(value, allow_inf_nan=False)
        except ValueError:
            return value
    if type(converted) not in expected or (isinstance(converted, float) and not isfinite(converted)):
        return value
    if kind != "int_type" or not isinstance(converted, float):
        return converted
    return int(converted) if converted.is_integer() else value


def _replace(node: Any, location: Sequence[int | str], old: Any, new: Any) -> bool:
    """Replace the value `old` at `location` in `node` with `new`. Return False if `old` is not there."""
    parent: Any = None
    key: Any = None
    for part in location:
        # pydantic's locations also contain the names of members of unions, which lead nowhere and are skipped.
        if isinstance(node, dict) if isinstance(part, str) else isinstance(node, list):
            try:
                parent, key, node = node, part, node[part]
            except LookupError:
                continue
    if parent is None or type(node) is not type(old) or node != old:
        return False
    parent[key] = new
    return True
