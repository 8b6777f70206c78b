"""Tools that the rules permit, and their names."""

import pytest

from servers.gateway.rules.names import Rules

NAMES = ["read_file", "read_secrets", "write_file"]
SHOWN = [
    (Rules(), NAMES),
    (Rules(allow=("read_*",)), ["read_file", "read_secrets"]),
    (Rules(allow=("read_*",), deny=("*_secrets",)), ["read_file"]),
    (Rules(deny=("write_file",)), ["read_file", "read_secrets"]),
    (Rules(allow=()), []),
    (Rules(rename={"read_file": "read"}), ["read", "read_secrets", "write_file"]),
    (Rules(deny=("read_file",), rename={"read_file": "read"}), ["read_secrets", "write_file"]),
]


def test_shown_names_follow_allow_deny_and_rename():
    assert [
        (rules, [rules.shown_name(name) for name in NAMES if rules.shown_name(name)]) for rules, _ in SHOWN
    ] == SHOWN


def test_a_shown_name_resolves_to_its_tool():
    rules = Rules(deny=("c",), rename={"a": "x", "c": "d"}, allow=("a", "b", "c", "new"))
    original_name = {"x": "a", "a": None, "b": "b", "c": None, "d": None, "new": "new"}
    assert {shown_name: rules.original_name(shown_name) for shown_name in original_name} == original_name


def test_a_tool_is_hidden_by_another_renamed_to_its_name():
    rules = Rules(rename={"a": "b"})
    assert (rules.shown_name("a"), rules.shown_name("b"), rules.original_name("b"), rules.is_replaced("b")) == (
        "b",
        None,
        "a",
        True,
    )


def test_a_name_that_a_denied_tool_would_have_is_free():
    rules = Rules(deny=("a",), rename={"a": "b"})
    assert (rules.shown_name("b"), rules.original_name("b")) == ("b", "b")


def test_two_tools_may_change_names():
    rules = Rules(rename={"a": "b", "b": "a"})
    assert [(rules.shown_name(name), rules.original_name(name)) for name in "ab"] == [("b", "b"), ("a", "a")]


def test_rules_change_only_the_name_and_the_description():
    tool = {"name": "a", "title": "A", "description": "Does.", "inputSchema": {"type": "object"}}
    rules = Rules(rename={"a": "x"}, describe={"a": "Does it."})
    assert rules.apply(tool) == {**tool, "name": "x", "description": "Does it."}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rename": {"a": "x", "b": "x"}}, "rename: 'a' and 'b' can't both be 'x'"),
        ({"rename": {"a": "with space"}}, "rename: 'with space' is not a valid name"),
        ({"describe": {"a": " "}}, "describe: 'a' needs a description"),
        ({"seconds": 0}, "seconds must be greater than 0"),
        ({"result_bytes": -1}, "result_bytes must be greater than 0"),
    ],
)
def test_contradictory_rules_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        Rules(**given)


def test_rules_without_effect_are_reported():
    rules = Rules(allow=("a*", "z*"), deny=("ab", "y"), rename={"ab": "x", "aa": "w"}, describe={"gone": "Is gone."})
    found = list(rules.find_unused(["aa", "ab"]))
    assert found == [("allow", "z*"), ("deny", "y"), ("rename", "ab"), ("describe", "gone")]
