"""Removes `$ref`, which the models of some hosts can't read, from the schemas of arguments
(google-gemini/gemini-cli#13326)."""

from typing import Any

_DEFINITIONS = "#/$defs/"


def inline_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with each reference replaced by its definition.

    Only the first replacement includes the descriptions. A definition that refers to itself stays a definition.
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
        self._known = set[str]()
        self._recursive = set[str]()

    def inline(self, value: Any, enclosing: tuple[str, ...] = (), *, is_bare: bool = False) -> Any:
        """Return part of a schema without references; `enclosing` are the definitions around it. With `is_bare`, it
        has no descriptions."""
        if isinstance(value, list):
            return [self.inline(item, enclosing, is_bare=is_bare) for item in value]
        if not isinstance(value, dict):
            return value
        name = str(value.get("$ref", "")).removeprefix(_DEFINITIONS)
        if name in enclosing:
            self._recursive.add(name)
            return value
        if name in self._definitions:
            is_known = name in self._known
            self._known.add(name)
            siblings = {key: item for key, item in value.items() if key != "$ref"}
            definition = self._definitions[name]
            return {**self.inline(definition, (*enclosing, name), is_bare=is_bare or is_known), **siblings}
        result = {key: self.inline(item, enclosing, is_bare=is_bare) for key, item in value.items()}
        # The schema of a property called "description" is not a string.
        if is_bare and isinstance(result.get("description"), str):
            del result["description"]
        if isinstance(discriminator := result.get("discriminator"), dict):
            discriminator.pop("mapping", None)
        return result

    def recursive_definitions(self) -> dict[str, Any]:
        """Return the definitions that refer to themselves, with the others inlined."""
        definitions: dict[str, Any] = {}
        while remaining := self._recursive - definitions.keys():
            name = min(remaining)
            definitions[name] = self.inline(self._definitions[name], (name,), is_bare=True)
        return definitions
