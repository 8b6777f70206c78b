"""Removes `$ref` from the schemas of arguments, because the models of some hosts can't read it
(google-gemini/gemini-cli#13326)."""

from typing import Any

_DEFINITIONS = "#/$defs/"


def inline_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return `schema` with each reference replaced with its definition.

    Only the first copy of a definition has the descriptions. A definition that refers to itself stays a definition.
    """
    definitions: dict[str, Any] = schema.get("$defs", {})
    if not definitions:
        return schema
    inlining = _Inlining(definitions)
    result: dict[str, Any] = inlining.inline({key: value for key, value in schema.items() if key != "$defs"})
    recursive = inlining.recursive_definitions()
    return {"$defs": recursive, **result} if recursive else result


class _Inlining:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._seen = set[str]()
        self._recursive = set[str]()

    def inline(self, value: Any, enclosing: tuple[str, ...] = (), *, is_bare: bool = False) -> Any:
        """Return `value`, a part of a schema, without references. `enclosing` is the names of the definitions that
        contain it. With `is_bare`, descriptions are removed."""
        if isinstance(value, list):
            return [self.inline(item, enclosing, is_bare=is_bare) for item in value]
        if not isinstance(value, dict):
            return value
        name = str(value.get("$ref", "")).removeprefix(_DEFINITIONS)
        if name in enclosing:
            self._recursive.add(name)
            return value
        if name in self._definitions:
            is_seen = name in self._seen
            self._seen.add(name)
            siblings = {key: item for key, item in value.items() if key != "$ref"}
            definition = self._definitions[name]
            return {**self.inline(definition, (*enclosing, name), is_bare=is_bare or is_seen), **siblings}
        result = {key: self.inline(item, enclosing, is_bare=is_bare) for key, item in value.items()}
        # If it is not a string, it is the schema of a property that is called "description".
        if is_bare and isinstance(result.get("description"), str):
            del result["description"]
        if isinstance(discriminator := result.get("discriminator"), dict):
            discriminator.pop("mapping", None)
        return result

    def recursive_definitions(self) -> dict[str, Any]:
        """Return the definitions that refer to themselves. References to others in them are replaced."""
        definitions: dict[str, Any] = {}
        while remaining := self._recursive - definitions.keys():
            name = min(remaining)
            definitions[name] = self.inline(self._definitions[name], (name,), is_bare=True)
        return definitions
