"""Schemas of arguments that the APIs of models refuse."""

from typing import Any

import pytest

from servers.gateway.joined.argument_schemas import flatten
from servers.gateway.joined.list_cache import valid_entries
from shared.protocol.types.tools import Tool
from tests.servers.gateway.joined.members import joined, opened, with_tools
from tests.shared.server.peer import ERAS, STATELESS, talking

TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def alternative(name: str, form: Any, *required: str) -> dict[str, Any]:
    return {"properties": {name: form}, "required": list(required)}


CASES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"oneOf": [alternative("a", TEXT, "a"), alternative("b", NUMBER, "b")]}, {"a": TEXT, "b": NUMBER}, []),
    ({"anyOf": [{"required": ["a"]}], "properties": {"a": TEXT}}, {"a": TEXT}, ["a"]),
    (
        {"allOf": [alternative("a", TEXT, "a"), alternative("b", TEXT)], **alternative("c", TEXT, "c")},
        {"a": TEXT, "b": TEXT, "c": TEXT},
        ["c", "a"],
    ),
    (
        {"oneOf": [alternative("kind", {"const": "a"}), alternative("kind", {"const": "b"})]},
        {"kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}},
        [],
    ),
    (
        {"$ref": "#/$defs/x~1y", "$defs": {"x/y": {"allOf": [alternative("a", TEXT, "a")]}}},
        {"a": TEXT},
        ["a"],
    ),
    (
        {"oneOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/none"}], "$defs": {"b": alternative("a", TEXT)}},
        {"a": TEXT},
        [],
    ),
    (
        {"allOf": [{"$ref": "#"}, {"$ref": "#/allOf/0"}, True, {"if": {}, "then": {}}], "not": {}, "enum": [{}]},
        {},
        [],
    ),
    ({"allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}] * 9}}}, {}, []),
    ({"allOf": [{"$ref": "#/allOf/" + "9" * 5_000}]}, {}, []),
    (
        {"anyOf": None, "allOf": {"properties": {"a": TEXT}}, "oneOf": [alternative("b", TEXT, 1, "b")]},
        {"b": TEXT},
        ["b"],
    ),
]


@pytest.mark.parametrize(("keywords", "properties", "required"), CASES)
def test_alternatives_at_the_top_level_become_properties(
    keywords: dict[str, Any], properties: dict[str, Any], required: list[str]
) -> None:
    definitions = {name: keywords[name] for name in ("$defs",) if name in keywords}
    expected = {"type": "object", **definitions, "properties": properties}
    assert flatten({"type": "object", **keywords}) == {**expected, **({"required": required} if required else {})}


def test_other_schemas_of_arguments_stay_the_same() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"anyOf": [TEXT, NUMBER]}},
        "if": {},
        "additionalProperties": False,
    }
    assert flatten(schema) is schema


@pytest.mark.parametrize("version", ERAS)
async def test_the_list_is_flat_for_clients_with_a_handshake(version: str) -> None:
    door = with_tools("a", "read")
    schema = {"type": "object", "oneOf": [alternative("a", TEXT)]}

    async def tools(*_: Any) -> dict[str, Any]:
        return {"tools": [{"name": "read", "inputSchema": schema}]}

    async with joined(door) as running:
        opened(door).handlers["tools/list"] = tools
        async with talking(running, version) as peer:
            [tool] = (await peer.request("tools/list"))["result"]["tools"]
    flat = {"type": "object", "properties": {"a": TEXT}}
    assert tool["inputSchema"] == (schema if version == STATELESS else flat)


def test_references_without_a_definition_are_dropped_from_both_schemas() -> None:
    known, unknown = {"$ref": "#/properties/b/0%7E1c"}, {"$ref": "#/$defs/unknown", "title": "x"}
    properties = {"a": known, "b": {"0/c": TEXT}, "d": [unknown, {"$ref": "#top"}, {"$ref": "#/properties/d/0"}]}
    schema = {"type": "object", "properties": properties}
    fixed = {**schema, "properties": {**properties, "d": [{"title": "x"}, *properties["d"][1:]]}}
    [tool] = valid_entries(Tool, [{"name": "a", "inputSchema": schema, "outputSchema": schema}])
    assert (tool["inputSchema"], tool["outputSchema"]) == (fixed, fixed)
