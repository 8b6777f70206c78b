"""Front matter: valid, invalid and hostile."""

import json
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from servers.prompts.errors import PromptError
from servers.prompts.format.definitions import Argument, Message, Prompt
from servers.prompts.format.forms import Kind, find_name, parse_file
from servers.prompts.format.front_matter import ARGUMENT, MESSAGE, PROMPT, TYPES, Key, parse_document, parse_mapping
from servers.prompts.format.prompts import parse_prompt
from servers.prompts.library.libraries import STARTER
from shared.yaml import write_yaml
from tests.servers.prompts.folders import front

SCHEMA = Path(__file__).parents[4] / "servers/prompts/format/front-matter.schema.json"
WHOLE = """---
name: greet
title: Greet somebody
description: Says hello.
tags: [demo, words]
arguments:
  - name: how
    title: How
    enum: [warm, cool]
    default: warm
    examples: [warm]
  - name: who
    type: string
    description: Who is greeted.
    required: true
  - {name: times, type: number, default: 2}
messages:
  - {role: assistant, text: "Whom?"}
  - resource: notes.txt
---

Say hello to {{ who }}.
"""


def test_all_fields_of_front_matter_are_parsed() -> None:
    assert parse_prompt(parse_document(WHOLE.encode()), "file") == Prompt(
        name="greet",
        description="Says hello.",
        title="Greet somebody",
        arguments=(
            Argument("who", "string", None, "Who is greeted.", required=True),
            Argument("how", "enum", "How", None, False, "warm", ("warm", "cool"), ("warm",)),
            Argument("times", "number", default=2),
        ),
        tags=("demo", "words"),
        messages=(
            Message("assistant", "text", "Whom?", 18),
            Message("user", "resource", "notes.txt", 19),
            Message("user", "text", "Say hello to {{ who }}.", 22),
        ),
    )


REFUSED = {
    "no description": ("---\ntitle: a\n---\nx", "has no description"),
    "nothing": ("---\n---\nx", "has no description"),
    "a colon": (
        front("title: a: b", "arguments:", "  - name: a"),
        "a string that contains a colon and a space needs quotes",
    ),
    "a number for a text": (front("title: 12"), "title is not a string; put it in quotes"),
    "a long text": (front(f"title: {'x' * 201}"), "more than 200 characters"),
    "no list": (front("tags: a"), "tags is not a list of 1 to 20 strings"),
    "arguments as a mapping": (front("arguments: {a: b}"), "is not a list of at most 50 mappings"),
    "an argument without a name": (front("arguments: [{type: string}]"), "an argument has no name"),
    "an odd name": (front("arguments: [{name: a-b}]"), "'a-b': name is not a name of letters"),
    "a name that means something": (front("arguments: [{name: loop}]"), "has another meaning in a template"),
    "two of one name": (front("arguments: [{name: a}, {name: a}]"), "two arguments are called 'a'"),
    "an unknown type": (front("arguments: [{name: a, type: text}]"), "type is not one of: string, number"),
    "an enum without values": (front("arguments: [{name: a, type: enum}]"), "only an argument of type enum has"),
    "values without an enum": (
        front("arguments: [{name: a, type: file, enum: [x]}]"),
        "only an argument of type enum has",
    ),
    "a value twice": (front("arguments: [{name: a, enum: [x, x]}]"), "enum has a duplicate value"),
    "a default of no value": (front("arguments: [{name: a, enum: [x], default: y}]"), "not one of its values"),
    "a default of another type": (front("arguments: [{name: a, type: number, default: true}]"), "is not a number"),
    "an infinite default": (front("arguments: [{name: a, type: number, default: 1e999}]"), "not a finite number"),
    "required with a default": (front("arguments: [{name: a, required: true, default: b}]"), "can't have both"),
    "required as a word": (front("arguments: [{name: a, required: 'yes'}]"), "neither true nor false"),
    "an unknown role": (front("messages: [{role: system, text: a}]"), "role is not one of: user, assistant"),
    "a message of nothing": (front("messages: [{role: user}]"), "a message must have exactly one of"),
    "a message of two": (front("messages: [{text: a, image: b}]"), "a message must have exactly one of"),
    "an empty message": (front("messages: [{text: ' '}]"), "empty text"),
    "half a surrogate": (front('title: "\\ud800"', "arguments: [{name: a}]"), "."),
    "a NUL": (front("title: a\0b"), "is not YAML"),
}


def test_invalid_front_matter_is_refused_with_its_line() -> None:
    for case, (text, reason) in REFUSED.items():
        with pytest.raises(PromptError, match=reason) as caught:
            parse_prompt(parse_document(text.encode()), "file")
        assert (caught.value.code, bool(caught.value.line)) == ("bad_prompt", True), case


WORDS: dict[str, Any] = {
    **{word: word for word in ("yes", "no", "on", "2024-01-02", "12:30", "0x1f", "1_000", "=")},
    "007": 7,
    "-1.5e3": -1500.0,
    "true": True,
    "~": None,
    "'12'": "12",
}


def test_plain_scalars_follow_yaml_1_2() -> None:
    found = {word: parse_mapping(f"a: {word}")["a"] for word in WORDS}
    assert found == WORDS
    assert [type(one) for one in found.values()] == [type(one) for one in WORDS.values()]


def test_an_alias_counts_towards_the_size_limit_each_time() -> None:
    assert parse_mapping("a: &x [1, 2]\nb: *x") == {"a": [1, 2], "b": [1, 2]}
    with pytest.raises(PromptError, match="more than 64,000 characters"):
        parse_mapping(f"a: &x {'b' * 1_000}\nb: [{'*x, ' * 64}]")
    # A pattern with backtracking at each space takes minutes.
    with pytest.raises(PromptError, match="the front matter has more than 64,000 characters"):
        parse_document(f"---\nargument-hint: [{' ' * 250_000}x\n---\nText".encode())


def test_front_matter_parses_equally_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert parse_prompt(parse_document(WHOLE.encode()), "file").title == "Greet somebody"
    with pytest.raises(PromptError, match="surrogate"):
        parse_mapping('a: "\\ud800"')


def test_written_values_are_read_back() -> None:
    values = [
        "1e3",
        "yes",
        "007",
        "",
        " a ",
        "a\nb\n",
        "a\n\n b \n",
        "- x",
        "#",
        "\t",
        "é\u2028",
        "~",
        "a\x85b",
        "a\n\x85b",
    ]
    for value in values:
        whole = {"a": value, "b": [value, 1, 1.5, True, {"c": value}]}
        assert parse_mapping(write_yaml(whole)) == whole


# The schema for editors


def build_schema() -> dict[str, Any]:
    """Returns the schema of valid front matter, as far as a schema can express it."""
    argument, message = _object(ARGUMENT, {}), _object(MESSAGE, {})
    message["oneOf"] = [{"required": [kind]} for kind in ("text", "image", "audio", "resource")]
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
        "text": {"type": "string", "maxLength": key.limit},
        "name": {"type": "string", "minLength": 1, "maxLength": key.limit},
        "argument": {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]{0,63}$"},
        "boolean": {"type": "boolean"},
        "value": {"type": ["string", "number", "boolean", "array"], "items": {"type": "string"}},
        "texts": {"type": "array", "items": text, "minItems": 1, "maxItems": key.limit},
        "items": {"type": "array", "items": item, "maxItems": key.limit},
        "type": {"enum": list(TYPES)},
        "role": {"enum": ["user", "assistant"]},
    }
    return {"description": key.description, **forms[key.kind]}


def test_the_schema_file_is_generated_from_the_table() -> None:
    assert json.loads(SCHEMA.read_text()) == build_schema()
    Draft202012Validator.check_schema(build_schema())


def test_the_schema_accepts_starter_prompts_and_rejects_invalid_ones() -> None:
    schema = Draft202012Validator(build_schema())
    for path in STARTER.glob("*.md"):
        schema.validate(parse_document(path.read_bytes()).front)
    for text in (
        "title: a",
        "description: a\ntitel: b",
        "description: a\narguments: [{name: a-b}]",
        "description: a\nmessages: [{text: a, image: b}]",
    ):
        assert not schema.is_valid(parse_mapping(text)), text


# Fuzz


def hostile(source: random.Random) -> bytes:
    """Returns a mutation of a valid file: cut, doubled, with odd pieces in it."""
    pieces = (
        "!!python/object/apply:os.system ['touch ran']|&a |*a|[|]|{|}|: |- |? |\n|\t|---\n|...\n|<<: |%YAML 9.9\n"
    )
    odd = [*pieces.split("|"), *"'\"|>\0\ufeff\ud7ff\\\r~", "name: x\n", "{{ x }}", "!<x> "]
    text = WHOLE
    for _ in range(source.randint(1, 5)):
        at, end = sorted(source.choices(range(len(text) + 1), k=2))
        match source.randrange(4):
            case 0:
                text = text[:at] + source.choice(odd) * source.choice([1, 1, 2, 40, 2_000]) + text[at:]
            case 1:
                text = text[:at] + text[min(end, at + 20) :]
            case 2:
                text = text[:end] + text[at:end] + text[end:]
            case 3:
                text = text[:at] + chr(source.randrange(0x20, 0x2FF)) + text[at:]
        text = text[:100_000]
    data = bytearray(text, "utf-8")
    if source.random() < 0.2:
        data[source.randrange(len(data))] = source.randrange(256)
    return bytes(data)


@pytest.mark.slow
def test_hostile_front_matter_never_crashes_hangs_or_runs_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 5_000
    monkeypatch.chdir(tmp_path)
    source = random.Random(8)
    good = 0
    for _ in range(count):
        data, began = hostile(source), time.process_time()
        for kind in (Kind("markdown", "a", ""), Kind("command", "a", ""), Kind("skill", "a", "a")):
            try:
                find_name(kind, data)
                good += isinstance(parse_file(kind, data), Prompt)
            except PromptError as error:
                assert error.code == "bad_prompt"  # noqa: PT017 (most are refused)
        assert time.process_time() - began < 10
    assert 0 < good < 3 * count
    assert list(tmp_path.iterdir()) == []
