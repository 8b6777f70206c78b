"""The JSON Schema of our front matter, for editors.

`front-matter.schema.json` beside this file holds what is made here.
"""

from collections.abc import Mapping
from typing import Any

from servers.prompts.format.keys import ARGUMENT, MESSAGE, PROMPT, TYPES, Key

__all__ = ["schema"]

_FILE_KINDS = ("text", "image", "audio", "resource")


def schema() -> dict[str, Any]:
    """What front matter is valid, as far as a schema can say."""
    argument, message = _object(ARGUMENT, {}), _object(MESSAGE, {})
    message["oneOf"] = [{"required": [kind]} for kind in _FILE_KINDS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Front matter of a prompt",
        **_object(PROMPT, {"arguments": argument, "messages": message}),
    }


def _object(keys: Mapping[str, Key], items: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    required = [name for name, key in keys.items() if key.required]
    return {
        "type": "object",
        "properties": {name: _of(key, items.get(name)) for name, key in keys.items()},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _of(key: Key, item: dict[str, Any] | None) -> dict[str, Any]:
    text = {"type": "string", "maxLength": 500}
    forms: dict[str, dict[str, Any]] = {
        "text": {"type": "string", "maxLength": key.most},
        "name": {"type": "string", "minLength": 1, "maxLength": key.most},
        "argument": {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]{0,63}$"},
        "boolean": {"type": "boolean"},
        "value": {"type": ["string", "number", "boolean", "array"], "items": {"type": "string"}},
        "texts": {"type": "array", "items": text, "minItems": 1, "maxItems": key.most},
        "items": {"type": "array", "items": item, "maxItems": key.most},
        "type": {"enum": list(TYPES)},
        "role": {"enum": ["user", "assistant"]},
    }
    return {"description": key.description, **forms[key.kind]}
