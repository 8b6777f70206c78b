"""The models of the protocol, compared with the official schema of the newest version and its examples."""

import json
from functools import cache
from typing import Any

import pytest
from pydantic import ValidationError

from shared.protocol.types import base, client, content, elicitation, prompts, resources, results, sampling, tools
from shared.protocol.types.base import Wire
from tests.schemas import SPEC_DIR, VERSIONS, requires_spec

NEWEST = SPEC_DIR / VERSIONS[-1]

MODULES = (base, client, content, elicitation, prompts, resources, results, sampling, tools)
OTHERWISE = {
    "CreateMessageParams": "CreateMessageRequestParams",
    "ElicitForm": "ElicitRequestFormParams",
    "ElicitUrl": "ElicitRequestURLParams",
}
"""Models whose names differ from those of their definitions."""
OF_THE_SESSION = {"resultType", "ttlMs", "cacheScope"}
"""Keys of results that the session and the cache read, not the models."""
NEVER_SENT = {"_meta"}
"""Keys that a client never sends in its answers."""


@cache
def _definitions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((NEWEST / "schema.json").read_text(encoding="utf-8"))["$defs"]
    return found


@cache
def _models() -> dict[str, type[Wire]]:
    """Returns the models by the names of their definitions."""
    named = {name: one for module in MODULES for name, one in vars(module).items() if isinstance(one, type)}
    models = {OTHERWISE.get(name, name): model for name, model in named.items() if issubclass(model, Wire)}
    return {name: model for name, model in models.items() if name in _definitions()}


def _keys(model: type[Wire], *, required: bool = False) -> set[str]:
    fields = model.model_fields.items()
    return {field.alias or name for name, field in fields if field.is_required() or not required}


@requires_spec
def test_models_have_the_properties_of_their_definitions() -> None:
    assert len(_models()) >= 40
    for name, model in _models().items():
        asked = set(_definitions()[name]["properties"]) - OF_THE_SESSION
        if name in ("CreateMessageResult", "ElicitResult", "ListRootsResult"):
            asked -= NEVER_SENT
        assert asked - _keys(model) == set(), name
        assert _keys(model, required=True) <= set(_definitions()[name].get("required", ())), name


@requires_spec
def test_the_official_examples_are_read_without_loss() -> None:
    examples = [(name, path) for name in _models() for path in sorted((NEWEST / "examples" / name).glob("*.json"))]
    assert len(examples) >= 40
    for name, path in examples:
        example = json.loads(path.read_text(encoding="utf-8"))
        read = _models()[name].model_validate(example).to_wire()
        example = {key: value for key, value in example.items() if key not in OF_THE_SESSION}
        assert {key: value for key, value in read.items() if value != {}} == example, path


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (results.ListToolsResult, {"tools": [1] * 1_000}),
        (results.ListResourcesResult, {"resources": [1] * 1_000}),
        (results.ReadResourceResult, {"contents": [1] * 1_000}),
        (results.CompleteResult, {"completion": {"values": [1] * 1_000}}),
        (tools.CallToolResult, {"content": [{"type": "text"}] * 1_000}),
        (prompts.GetPromptResult, {"messages": [{}] * 1_000}),
        (sampling.CreateMessageParams, {"maxTokens": 1, "messages": [{"role": "user", "content": [1] * 1_000}]}),
    ],
)
def test_lists_are_refused_at_their_first_invalid_entry(model: type[Wire], value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(value)
    assert refused.value.error_count() < 10


def test_integers_may_be_written_as_whole_floats() -> None:
    listed = {"resources": [{"uri": "a:b", "name": "b", "size": 3.0}]}
    size = results.ListResourcesResult.model_validate(listed).resources[0].size
    assert (size, type(size)) == (3, int)


def test_other_values_are_not_integers() -> None:
    for size in (3.5, float("inf"), float("nan"), "3", True):
        with pytest.raises(ValidationError):
            resources.Resource.model_validate({"uri": "a:b", "name": "b", "size": size})
