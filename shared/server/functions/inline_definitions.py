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
    result: dict[str, Any] = inlining.put({key: value for key, value in schema.items() if key != "$defs"})
    recursive = inlining.recursive_definitions()
    return {"$defs": recursive, **result} if recursive else result


class _Inlining:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._known = set[str]()
        self._recursive = set[str]()

    def put(self, value: Any, within: tuple[str, ...] = (), *, bare: bool = False) -> Any:
        """Return part of a schema; `within` are the definitions around it, and `bare` has no descriptions."""
        if isinstance(value, list):
            return [self.put(item, within, bare=bare) for item in value]
        if not isinstance(value, dict):
            return value
        name = str(value.get("$ref", "")).removeprefix(_DEFINITIONS)
        if name in self._definitions:
            return self._put_definition(name, value, within, bare=bare)
        result = {key: self.put(item, within, bare=bare) for key, item in value.items()}
        # A property may have this name as well, and is not a string.
        if bare and isinstance(result.get("description"), str):
            del result["description"]
        if isinstance(discriminator := result.get("discriminator"), dict):
            discriminator.pop("mapping", None)
        return result

    def _put_definition(self, name: str, reference: dict[str, Any], within: tuple[str, ...], *, bare: bool) -> Any:
        if name in within:
            self._recursive.add(name)
            return reference
        is_known = name in self._known
        self._known.add(name)
        beside = {key: item for key, item in reference.items() if key != "$ref"}
        return {**self.put(self._definitions[name], (*within, name), bare=bare or is_known), **beside}

    def recursive_definitions(self) -> dict[str, Any]:
        """Return the definitions that refer to themselves, with the others inlined."""
        definitions: dict[str, Any] = {}
        while remaining := self._recursive - definitions.keys():
            name = min(remaining)
            definitions[name] = self.put(self._definitions[name], (name,), bare=True)
        return definitions
