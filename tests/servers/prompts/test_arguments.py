"""Values of arguments, from texts and from forms, and their completions."""

import os
from pathlib import Path
from typing import Any

import pytest

from servers.prompts.arguments import (
    MAX_CHARACTERS,
    Completion,
    build_form,
    complete,
    find_missing,
    format_filled,
    parse_value,
    parse_values,
)
from servers.prompts.errors import PromptError
from servers.prompts.format.definitions import Argument, Prompt
from servers.prompts.library.folder import Folder, find_paths
from tests.servers.prompts.folders import write

GOOD: list[tuple[str, str, Any]] = [
    ("string", " a ", " a "),
    ("number", "12", 12),
    ("number", " -1.5e3 ", -1500.0),
    ("boolean", "Yes", True),
    ("boolean", "0", False),
    ("file", "a b/c.txt", "a b/c.txt"),
    ("url", " https://example.com:8080/a?b#c ", "https://example.com:8080/a?b#c"),
    ("list", "a, b,,c ", ["a", "b", "c"]),
    ("list", "a, b\nc\n", ["a, b", "c"]),
    ("list", '["a, b", 1, ""]', ["a, b", "1"]),
]
BAD = [
    ("number", "one"),
    ("number", "1e999"),
    ("number", "nan"),
    ("number", "1_000"),
    ("boolean", "maybe"),
    ("file", "a\0b"),
    ("url", "example.com"),
    ("url", "file:///etc/passwd"),
    ("url", "javascript:alert(1)"),
    ("url", "https://"),
    ("url", "https://a b"),
    ("url", "http://[::1"),
    ("url", "http://a:99999"),
    ("list", "[1, {}]"),
    ("list", "[" * 100_000),
    ("list", '["\\ud800"]'),
    ("list", ",".join("a" * 1_001)),
]


def test_a_text_is_converted_to_the_argument_type() -> None:
    found = [(kind, text, parse_value(Argument("a", kind), text)) for kind, text, _ in GOOD]
    assert found == GOOD
    assert [type(value) for *_, value in found] == [type(value) for *_, value in GOOD]


def test_a_text_of_another_type_is_refused() -> None:
    for kind, text in BAD:
        with pytest.raises(PromptError, match=r"^'a' is not ") as caught:
            parse_value(Argument("a", kind), text)
        assert (caught.value.code, len(str(caught.value)) < 300) == ("bad_arguments", True), text


def test_an_enum_value_matches_in_another_case() -> None:
    argument = Argument("a", "enum", enum=("Low", "high", "HIGH"))
    assert parse_value(argument, " low") == "Low"
    assert parse_value(argument, "HIGH") == "HIGH"
    for text in ("High", "medium"):
        with pytest.raises(PromptError, match="'a' is not one of: 'Low', 'high', 'HIGH'"):
            parse_value(argument, text)


def test_a_missing_value_is_empty_or_the_default() -> None:
    empty = {"string": "", "number": None, "boolean": False, "url": "", "file": "", "list": []}
    assert {kind: parse_value(Argument("a", kind), "") for kind in empty} == empty
    defaults: dict[str, Any] = {"number": 0, "boolean": True, "string": "x", "list": ["x"]}
    assert {kind: parse_value(Argument("a", kind, default=one), "") for kind, one in defaults.items()} == defaults


def test_a_long_text_is_refused() -> None:
    assert len(parse_value(Argument("a"), "x" * MAX_CHARACTERS)) == MAX_CHARACTERS
    with pytest.raises(PromptError, match="more than 500,000 characters"):
        parse_value(Argument("a"), "x" * (MAX_CHARACTERS + 1))


PROMPT = Prompt("one", "d", arguments=(Argument("a", required=True), Argument("b", required=True), Argument("c")))


def test_missing_arguments_are_listed_and_optional_ones_are_empty() -> None:
    assert [one.name for one in find_missing(PROMPT, {"b": "x", "a": ""})] == ["a"]
    with pytest.raises(PromptError, match="the prompt 'one' needs: 'a', 'b'") as caught:
        parse_values(PROMPT, {"c": "x"})
    assert caught.value.code == "missing_arguments"
    assert parse_values(PROMPT, {"a": "1", "b": "2"}) == {"a": "1", "b": "2", "c": ""}


def test_all_invalid_arguments_are_reported_but_few_unknown_ones() -> None:
    prompt = Prompt("one", "d", arguments=(Argument("a", "number"), Argument("b", "boolean")))
    with pytest.raises(PromptError) as caught:
        parse_values(prompt, {"a": "x", "b": "y", "d": "z"})
    wrong = "'d' is not an argument of this prompt; 'a' is not a number: 'x'; 'b' is not yes or no: 'y'"
    assert str(caught.value) == f"{wrong}. Its arguments: 'a', 'b'."
    with pytest.raises(PromptError) as caught:
        parse_values(Prompt("one", "d"), {f"x{number}": "" for number in range(10_000)})
    assert ("'x9'" in str(caught.value), "'x10'" in str(caught.value)) == (True, False)


# Completions


def test_completions_list_prefixes_before_infixes_up_to_a_hundred() -> None:
    argument = Argument("a", "enum", enum=("SQLite", "PostgreSQL", "MySQL", "DuckDB"))
    assert complete(argument, "sql").values == ["SQLite", "PostgreSQL", "MySQL"]
    assert complete(argument, "").values == list(argument.enum)
    assert complete(Argument("a", examples=("pytest", "Jest")), "py").values == ["pytest"]
    assert complete(Argument("a", "boolean"), "t").values == ["true"]
    found = complete(Argument("a", examples=tuple(f"x{n}" for n in range(250))), "x")
    assert (len(found.values), found.total) == (100, 250)


def suggest(folders: list[Folder], typed: str) -> Completion:
    return complete(Argument("a", "file"), typed, find_paths(folders, typed))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    write(
        tmp_path,
        {"secret.txt": "", "root/src/main.py": "", "root/src/make.py": "", "root/README": "", "root/.env": ""},
    )
    (tmp_path / "root/src/out").symlink_to(tmp_path)
    return Folder(tmp_path / "root")


TYPED: dict[str, list[str]] = {
    "": ["README", "src/"],
    "s": ["src/"],
    "src/": ["src/main.py", "src/make.py"],
    "src/ma": ["src/main.py", "src/make.py"],
    "src/mak": ["src/make.py"],
    ".": [".env"],
}
NOTHING = ("../", "../s", "src/out/", "src/../../", "/", "/etc/pass", "nowhere/x", "README/x", "a\0b/")


def test_file_completions_stay_within_the_folder(folder: Folder) -> None:
    assert {typed: suggest([folder], typed).values for typed in TYPED} == TYPED
    assert [typed for typed in NOTHING if suggest([folder], typed).values] == []


def test_a_file_name_outside_utf8_is_not_suggested(folder: Folder) -> None:
    (folder.root / os.fsdecode(b"src/ma\xff")).touch()
    assert suggest([folder], "src/ma").values == ["src/main.py", "src/make.py"]


def test_file_completions_read_a_directory_up_to_the_limit(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servers.prompts.library.folder._MAX_FILES", 1)
    assert len(folder.children("src")) == 2


def test_completions_of_several_folders_are_merged(folder: Folder, tmp_path: Path) -> None:
    write(tmp_path, {"more/src/x.py": "", "more/sub/y.py": ""})
    found = suggest([folder, Folder(tmp_path / "more")], "s")
    assert found.values == ["src/", "sub/"]


# Forms


FIELDS: list[tuple[Argument, dict[str, Any]]] = [
    (Argument("a"), {"type": "string", "minLength": 1}),
    (Argument("a", "number"), {"type": "number"}),
    (Argument("a", "boolean"), {"type": "boolean"}),
    (Argument("a", "url", title="A"), {"type": "string", "format": "uri", "title": "A"}),
    (Argument("a", "enum", enum=("x", "y")), {"type": "string", "enum": ["x", "y"]}),
    (
        Argument("a", "file", description="What to read."),
        {"type": "string", "minLength": 1, "description": "What to read. The path of a file."},
    ),
    (
        Argument("a", "list", examples=("1", "2", "3", "4")),
        {
            "type": "string",
            "minLength": 1,
            "description": "One per line, or separated by commas. For example: 1, 2, 3",
        },
    ),
]


def test_a_form_field_has_the_type_of_its_argument() -> None:
    for argument, field in FIELDS:
        assert build_form([argument]) == {"type": "object", "properties": {"a": field}, "required": ["a"]}


def test_form_values_become_texts_and_json_lists() -> None:
    arguments = [Argument(name) for name in "abcdef"]
    filled = {"a": "x", "b": 7, "c": 1.5, "d": True, "e": None, "more": "y"}
    assert format_filled(filled, arguments) == {"a": "x", "b": "7", "c": "1.5", "d": "true"}
    assert format_filled({"a": ["x", "y"]}, [Argument("a", "list")]) == {"a": '["x", "y"]'}
