"""Matching and expansion of URI templates."""

import pytest

from shared.errors import DeclarationError, InvalidParams
from shared.protocol.uri_template import UriTemplate, expand_uri, is_uri, is_uri_template


def match(template, uri):
    return UriTemplate(template).match(uri)


MATCHES: dict[str, dict[str, dict[str, str] | None]] = {
    "a:b": {"a:b": {}, "a:c": None},
    "a:///{x}": {
        "a:///one": {"x": "one"},
        "a:///one\n": {"x": "one\n"},
        **dict.fromkeys(("a:///", "a:///one/two", "a:///one?two", "a:///one#two"), None),
        **dict.fromkeys(("b:///one", "A:///one", " a:///one"), None),
    },
    "a:///{x}/{y}": {"a:///1/2": {"x": "1", "y": "2"}},
    "a:///{x}/end": {"a:///1/end": {"x": "1"}, "a:///1/end/": None},
    "a:///{+x}": {
        "a:///one/two?three#four": {"x": "one/two?three#four"},
        "a:///a%20b/%2e%2e/c": {"x": "a%20b/%2e%2e/c"},
    },
    "a:///{+x}/{y}": {"a:///1/2/3": {"x": "1/2", "y": "3"}},
    "a:///{x}/{+y}": {"a:///1/2/3": {"x": "1", "y": "2/3"}},
    "a:///{x}.txt": {"a:///a.b.txt": {"x": "a.b"}},
    "a:///.*": {"a:///bc": None},
    # Two variables in a segment are split at the first possible place.
    "a:///{x}.{y}": {"a:///a.gz": {"x": "a", "y": "gz"}, "a:///a.tar.gz": {"x": "a", "y": "tar.gz"}, "a:///a": None},
    # A query as a whole stays as it is written.
    "a:{x}{?all*}": {
        "a:b": {"x": "b"},
        "a:b?": {"x": "b"},
        "a:b?y=1&z=%202": {"x": "b", "all": "y=1&z=%202"},
        "a:b?all=1": {"x": "b", "all": "all=1"},
    },
    # The variables of a query are optional and in any order.
    "a:///s{?q,n}": {
        "a:///s": {},
        "a:///s?q=1": {"q": "1"},
        "a:///s?n=2&q=a%20b+c": {"q": "a b c", "n": "2"},
        "a:///s?q=": {"q": ""},
        "a:///s?other=1": {},
        "a:///s/?q=1": None,
    },
}


@pytest.mark.parametrize("template", MATCHES)
def test_a_template_matches_the_whole_uri_or_nothing(template):
    assert {uri: match(template, uri) for uri in MATCHES[template]} == MATCHES[template]


def test_variables_are_percent_decoded_once():
    meant = {"a%20b": "a b", "%C3%A9": "é", "a%2Fb": "a/b", "%2525": "%25", "100%": "100%", "a+b": "a+b"}
    assert {written: match("a:///{x}", f"a:///{written}")["x"] for written in meant} == meant


def test_names_of_variables_are_in_the_order_of_the_template():
    assert UriTemplate("a:///{x}/{+y}{?z,w}").names == ["x", "y", "z", "w"]


def test_unsupported_templates_raise_a_declaration_error():
    for template in (
        *("a:{", "a:}", "a:{}", "a:{x", "a:{x}}", "a:{#x}", "a:{/x}", "a:{&x}", "a:{x*}", "a:{x:3}", "a:{1x}"),
        *("a:{x-y}", "a:{x,y}", "a:{x}{y}", "a:{x}{+y}", "a:{+x}/{+y}", "a:{+x}-{y}", "a:{x}/{x}", "a:{x}{?x}"),
        *("a:{?x}/b", "a:{?x}{?y}", "a:{?x}/{y}", "a:{+x*}", "a:{?x,y*}", "a:{?x*,y}"),
    ):
        with pytest.raises(DeclarationError, match="a:"):
            UriTemplate(template)


def test_hostile_uris_are_matched_in_linear_time():
    # Quadratic matching would take minutes and exceed the time limit of the test.
    for template, part, end in (
        ("a:{x}-{y}", "-", "/"),
        ("a:{x}-{y}-{z}!", "-", ""),
        ("a:{x}.{y}.txt/{z}", ".", ""),
        ("a:{+x}/{y}", "-/", "/"),
        ("a:{x}/{+y}/{z}!", "a/", ""),
        ("a:{+x}!", "!", "/"),
    ):
        UriTemplate(template).match("a:" + part * 100_000 + end)


# Expanding


def test_templates_are_expanded_with_values():
    expanded = [
        ("a:b", {"x": "1"}, "a:b"),
        ("a:///{x}", {"x": "a b/é?"}, "a:///a%20b%2F%C3%A9%3F"),
        ("a:///{x}/{y}.txt", {"x": "1", "y": "2"}, "a:///1/2.txt"),
        ("a://{+x}", {"x": "b/c?d#e%20f"}, "a://b/c?d#e%20f"),
        ("a://{+x}{?q}", {"x": "b/c?d", "q": "1"}, "a://b/c%3Fd?q=1"),
        ("a://{+x}", {"x": "100% é"}, "a://100%25%20%C3%A9"),
        ("a:b{?q,n}", {}, "a:b"),
        ("a:b{?q,n}", {"n": "a b&c", "other": "1"}, "a:b?n=a%20b%26c"),
        ("a:b{?all*}", {"all": "x=1&y"}, "a:b?x=1&y"),
        ("a:b{?all*}", {}, "a:b"),
    ]
    assert [row for row in expanded if UriTemplate(row[0]).expand(row[1]) != row[2]] == []


@pytest.mark.parametrize("values", [{}, {"y": "1"}, {"x": ""}])
def test_missing_variables_of_the_path_raise_an_error(values):
    with pytest.raises(InvalidParams, match="'x'"):
        UriTemplate("a:///{x}").expand(values)


def test_expand_uri_takes_the_variables_as_keywords() -> None:
    assert expand_uri("note://{name}", name="my note") == "note://my%20note"
    with pytest.raises(TypeError, match=r"note://\{name\} has the variables name, not title"):
        expand_uri("note://{name}", title="x")


@pytest.mark.parametrize(
    ("template", "is_one"),
    [("a:b", True), ("a:{b}?c={d}", True), ("{+uri}/{part}", True), ("{uri}", False), ("a b:{c}", False)],
)
def test_uri_templates_are_recognized(template: str, *, is_one: bool) -> None:
    assert is_uri_template(template) is is_one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://example.org/ü?q=ä", True),
        ("https://example.org/1914\u20131918", True),
        ("file:///caf\udce9", False),
        ("note://my note", False),
        ("note://my\u3000note", False),
    ],
)
def test_uris_may_have_letters_beyond_ascii_but_no_spaces(text, expected):
    assert is_uri(text) is expected
