"""The file of pins."""

import json
import os

import pytest

from servers.gateway.rules.pins import Pins, definition_of, digest_of

TOOL = {"name": "a", "description": "Does.", "inputSchema": {"type": "object", "properties": {"x": {}, "y": {}}}}


def test_the_digest_does_not_depend_on_the_order_of_keys():
    turned = {**TOOL, "inputSchema": {"properties": {"y": {}, "x": {}}, "type": "object"}}
    assert digest_of(turned) == digest_of(dict(reversed(TOOL.items())))


def test_what_a_model_or_a_host_goes_by_changes_the_digest():
    schema = {"type": "object"}
    others = {"name": "b", "title": "A", "description": "Does more.", "inputSchema": schema, "outputSchema": schema}
    others["annotations"] = {"readOnlyHint": True}
    assert [name for name, value in others.items() if digest_of({**TOOL, name: value}) == digest_of(TOOL)] == []


def test_what_is_no_part_of_a_definition_does_not_change_it():
    assert definition_of({**TOOL, "icons": [], "_meta": {"a": 1}, "title": None}) == TOOL


def test_what_was_pinned_is_there_in_the_next_process(tmp_path):
    path = tmp_path / "of the user" / "pins" / "a.pins.json"
    pins = Pins(path)
    assert (pins.is_new, pins.digest("a")) == (True, None)
    pins.record([TOOL], shows_pages=False)
    assert json.loads(path.read_text())["tools"]["a"]["definition"] == TOOL  # people read it too
    assert os.name != "posix" or path.stat().st_mode & 0o077 == 0
    pins = Pins(path)
    assert (pins.is_new, pins.names, pins.digest("a"), pins.definition("a")) == (False, ["a"], digest_of(TOOL), TOOL)
    assert pins.digest("b") is None


def test_what_another_process_pins_is_seen(tmp_path):
    pins = Pins(tmp_path / "a.pins.json")
    assert not pins.refresh()
    pins.record([], shows_pages=False)
    assert not pins.refresh()  # one's own record is nothing new
    Pins(tmp_path / "a.pins.json").record([TOOL], shows_pages=False)
    assert pins.refresh()
    assert pins.digest("a") == digest_of(TOOL)
    assert not pins.refresh()


def test_a_damaged_file_is_refused(tmp_path):
    for text in ("", "[]", "{}", '{"tools": []}', '{"tools": {"a": {"sha256": "1"}}}', "\xff"):
        (tmp_path / "a.pins.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(ValueError, match="not a pin file; remove it to pin the tools again"):
            Pins(tmp_path / "a.pins.json")


def test_a_file_that_is_damaged_later_leaves_the_pins(tmp_path, caplog):
    pins = Pins(tmp_path / "a.pins.json")
    pins.record([TOOL], shows_pages=False)
    pins.path.write_text("{")
    assert not pins.refresh()
    assert pins.digest("a") == digest_of(TOOL)
    assert "earlier pins are kept" in caplog.text


def test_what_can_not_be_written_is_pinned_all_the_same(tmp_path):
    pins = Pins(tmp_path / "a" / "a.pins.json")
    (tmp_path / "a").write_text("no directory")
    with pytest.raises(OSError, match=r"exists|directory"):
        pins.record([TOOL], shows_pages=False)
    assert pins.digest("a") == digest_of(TOOL)


PAGE = {**TOOL, "_meta": {"a": 1, "ui": {"resourceUri": "ui://a/b"}}}
OTHER_PAGE = {**TOOL, "_meta": {"ui": {"resourceUri": "ui://a/c"}}}
FLAT_PAGE = {**TOOL, "_meta": {"ui/resourceUri": "ui://a/b"}}


def test_a_page_is_pinned_and_clients_that_show_none_need_not_see_it(tmp_path):
    pins = Pins(tmp_path / "a.pins.json")
    pins.record([PAGE], shows_pages=True)
    assert pins.definition("a") == {**TOOL, "_meta": {"ui": {"resourceUri": "ui://a/b"}}}
    assert [pins.fits(tool) for tool in (PAGE, TOOL, OTHER_PAGE, FLAT_PAGE)] == [True, True, False, False]


def test_a_page_that_comes_later_does_not_fit(tmp_path):
    pins = Pins(tmp_path / "a.pins.json")
    pins.record([TOOL], shows_pages=True)
    assert not pins.fits(PAGE)


def test_the_page_of_a_tool_that_was_pinned_for_others_is_pinned_when_it_is_first_seen(tmp_path):
    pins = Pins(tmp_path / "a.pins.json")
    pins.record([TOOL, {**TOOL, "name": "b"}], shows_pages=False)
    assert pins.fits(PAGE)
    pins.learn_pages([PAGE, {**TOOL, "name": "b"}])
    later = Pins(tmp_path / "a.pins.json")
    assert (later.names, later.fits(PAGE), later.fits(OTHER_PAGE)) == (["a", "b"], True, False)
