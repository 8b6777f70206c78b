import json

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.read.json_page import read_json
from tests.servers.fetch.bodies import source


def test_json_is_indented_with_decoded_escapes():
    page = read_json(source("json", '{"name":"Gr\\u00fc\\u00dfe","list":[true,null,{}],"empty":[]}'))
    assert page.text == ('{\n  "name": "Grüße",\n  "list": [\n    true,\n    null,\n    {}\n  ],\n  "empty": []\n}')
    assert (page.kind, page.charset, page.notes) == ("json", "utf-8", ())


def test_numbers_keep_their_spelling():
    for number in ("0.10", "1e400", "-0", "12345678901234567890123", "3.141592653589793238", "9" * 10_000):
        assert read_json(source("json", f"[{number}]")).text == f"[\n  {number}\n]"


def test_indenting_keeps_the_value():
    text = json.dumps({"a": [1, {"b": '\n\t"\\'}, [], {}, ""], "é\u2028": {"c": [[["d"]]]}, "": None})
    assert json.loads(read_json(source("json", text)).text) == json.loads(text)


def test_json_lines_become_a_list():
    page = read_json(source("json", '{"n": 1}\n{"n": 2}\n\n'))
    assert json.loads(page.text) == [{"n": 1}, {"n": 2}]
    assert page.notes == ("Lines of JSON, shown as one list of 2 values.",)
    assert read_json(source("json", '{"n": 1}\n{"n": 2}', section="/1/n")).text == "2"


def test_invalid_json_is_shown_unchanged_with_a_note():
    for text in ("{'a': 1}", "[1, 2", "callback({})", "[NaN]", "", "12 monkeys", '{"a": 1} trailing'):
        page = read_json(source("json", text))
        assert page.text == text
        assert page.notes[0].startswith("The JSON is not valid (")
        with pytest.raises(FetchError, match="the JSON is not valid") as caught:
            read_json(source("json", text, "json"))
        assert caught.value.code == "unreadable"


def test_deeply_nested_json_is_shown_unchanged():
    text = "[" * 100_000 + "]" * 100_000
    page = read_json(source("json", text))
    assert page.text == text
    assert page.notes == ("The JSON is nested too deeply, so it is shown as written.",)


def test_json_too_long_when_indented_is_shown_unchanged(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("servers.fetch.read.json_page.MAX_CHARACTERS", 1_000)  # ten million would take seconds
    text = "[" * 100 + "]" * 100
    page = read_json(source("json", text))
    assert page.text == text
    assert page.notes[0].startswith("Too long")


def test_a_section_of_json_is_a_json_pointer():
    rows = {
        "": '{\n  "a/b": [\n    10,\n    {\n      "m~n": "x"\n    }\n  ],\n  "": 0\n}',
        "/a~1b/0": "10",
        "/a~1b/1/m~0n": '"x"',
        "/": "0",
    }
    text = '{"a/b": [10, {"m~n": "x"}], "": 0}'
    assert {pointer: read_json(source("json", text, section=pointer)).text for pointer in rows} == rows


def test_a_pointer_without_a_target_is_an_error():
    for pointer in ("/b", "/a/2", "/a/-1", "/a/x", "/a/0/b", "/a/" + "9" * 5_000):
        with pytest.raises(FetchError, match="the JSON has nothing at '/") as caught:
            read_json(source("json", '{"a": [1, 2]}', section=pointer))
        assert caught.value.code == "not_found"


def test_an_invalid_pointer_is_refused():
    with pytest.raises(FetchError, match="such as /items/0/name") as caught:
        read_json(source("json", "{}", section="items"))
    assert caught.value.code == "bad_argument"


def test_metadata_of_json_has_type_names_and_count():
    page = read_json(source("json", '{"a": 1, "b": 2}', "metadata"))
    about = json.loads(page.text)
    assert page.charset == "utf-8"
    assert about["type"] == "object"
    assert about["names"] == ["a", "b"]
    assert json.loads(read_json(source("json", "[1]", "metadata")).text)["items"] == 1
