"""The one reader of YAML: plain values, counted while they grow, and the line of each fault."""

from typing import Any

import pytest

from shared.yaml import YamlError, YamlLimits, read_yaml, write_yaml

SMALL = YamlLimits(characters=100, values=10, depth=3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: 1\nb: [x, '1', 1.5, .5, true, null, ~]", {"a": 1, "b": ["x", "1", 1.5, 0.5, True, None, None]}),
        ("[yes, on, 2020-12-24, 0x10, 1_000]", ["yes", "on", "2020-12-24", "0x10", "1_000"]),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("1: a", {"1": "a"}),
    ],
)
def test_plain_words_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    assert read_yaml(text) == value


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a: 1\n- b", 2, "not YAML"),
        ("a: 1\nb: c: d", 2, "needs quotes"),
        ("a: 1\na: 2", 2, "the key 'a' is given twice"),
        ("a: 1\nb: !!int 1", 2, "has a tag"),
        ("a: 1\nb: *x", 2, "is not defined before it"),
        ("a: 1\n[b]: 1", 2, "a key is not a plain string"),
        ('a: 1\nb: "\\ud800"', 2, "not YAML|half of a surrogate pair"),
        ("a: 1\n---\nb: 1", 1, "more than one document"),
        ("x" * 101, 1, "more than 100 characters"),
        (f"- &x {'a' * 40}\n- *x\n- *x", 3, "more than 100 characters"),
        ("[1, 2, 3,\n4, 5, 6, 7, 8, 9, 10]", 2, "more than 10 values"),
        ("- &x [1, 2, 3, 4]\n- *x", 2, "more than 10 values"),
        ("[[[\n[1]]]]", 2, "more than 3 levels deep"),
    ],
)
def test_a_fault_is_told_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(YamlError, match=reason) as caught:
        read_yaml(text, limits=SMALL)
    assert (caught.value.line, str(caught.value)) == (line, f"line {line}: {caught.value.reason}")


def test_lines_are_those_of_the_file() -> None:
    found = read_yaml("a: 1\nb:\n  c: 1", line=11)
    assert (found.line, found.lines, found["b"].lines) == (11, {"a": 11, "b": 12}, {"c": 13})


@pytest.mark.parametrize("value", [{"a": "yes", "b": "1", "c": ["x\ny\n", "\x85", "", "~"], "d": {"e": None}}])
def test_what_was_written_is_read_as_the_same(value: Any) -> None:
    assert read_yaml(write_yaml(value)) == value
