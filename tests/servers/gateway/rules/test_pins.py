"""The file of pins."""

import json
import os

import pytest

from servers.gateway.rules.pins import Pins, definition_of, digest_of

TOOL = {"name": "a", "description": "Does.", "inputSchema": {"type": "object", "properties": {"x": {}, "y": {}}}}


def test_the_digest_does_not_depend_on_the_order_of_keys():
    turned = {**TOOL, "inputSchema": {"properties": {"y": {}, "x": {}}, "type": "object"}}
    assert digest_of(turned) == digest_of(dict(reversed(TOOL.items())))


def test_each_field_that_a_model_or_a_host_reads_changes_the_digest():
    schema = {"type": "object"}
    others = {"name": "b", "title": "A", "description": "Does more.", "inputSchema": schema, "outputSchema": schema}
    others["annotations"] = {"readOnlyHint": True}
    assert [name for name, value in others.items() if digest_of({**TOOL, name: value}) == digest_of(TOOL)] == []


def test_icons_metadata_and_nulls_are_not_part_of_a_definition():
    assert definition_of({**TOOL, "icons": [], "_meta": {"a": 1}, "title": None}) == TOOL


def test_pins_persist_in_the_next_process(tmp_path):
    path = tmp_path / "of the user" / "pins" / "a.pins.json"
    pins = Pins(path)
    assert (pins.is_new, pins.digest("a")) == (True, None)
    pins.record([TOOL], shows_apps=False)
    assert json.loads(path.read_text())["tools"]["a"]["definition"] == TOOL  # people read it too
    assert os.name != "posix" or path.stat().st_mode & 0o077 == 0
    pins = Pins(path)
    assert (pins.is_new, pins.names, pins.digest("a"), pins.definition("a")) == (False, ["a"], digest_of(TOOL), TOOL)
    assert pins.digest("b") is None


def test_refreshing_sees_pins_of_another_process(tmp_path):
    pins = Pins(tmp_path / "a.pins.json")
    assert not pins.refresh()
    pins.record([], shows_apps=False)
    assert not pins.refresh()  # one's own record is nothing new
    Pins(tmp_path / "a.pins.json").record([TOOL], shows_apps=False)
    assert pins.refresh()
    assert pins.digest("a") == digest_of(TOOL)
    assert not pins.refresh()


def test_a_damaged_file_is_refused(tmp_path):
    for text in ("", "[]", "{}", '{"tools": []}', '{"tools": {"a": {"sha256": "1"}}}', "\xff"):
        (tmp_path / "a.pins.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(ValueError, match="not a pin file; remove it to pin the tools again"):
            Pins(tmp_path / "a.pins.json")


def test_a_file_damaged_later_keeps_the_loaded_pins(tmp_path, caplog):
    pins = Pins(tmp_path / "a.pins.json")
    pins.record([TOOL], shows_apps=False)
    pins.path.write_text("{")
    assert not pins.refresh()
    assert pins.digest("a") == digest_of(TOOL)
    assert "earlier pins are kept" in caplog.text


def test_pins_that_can_not_be_written_are_kept_in_memory(tmp_path):
    pins = Pins(tmp_path / "a" / "a.pins.json")
    (tmp_path / "a").write_text("no directory")
    with pytest.raises(OSError, match=r"exists|directory"):
        pins.record([TOOL], shows_apps=False)
    assert pins.digest("a") == digest_of(TOOL)


PAGE = {**TOOL, "_meta": {"a": 1, "ui": {"resourceUri": "ui://a/b"}}}
OTHER_PAGE = {**TOOL, "_meta": {"ui": {"resourceUri": "ui://a/c"}}}
FLAT_PAGE = {**TOOL, "_meta": {"ui/resourceUri": "ui://a/b"}}


def test_a_pinned_page_is_optional_for_clients_without_pages(tmp_path):
    pins = Pins(tmp_path / "a.pins.json")
    pins.record([PAGE], shows_apps=True)
    assert pins.definition("a") == {**TOOL, "_meta": {"ui": {"resourceUri": "ui://a/b"}}}
    assert [pins.matches(tool) for tool in (PAGE, TOOL, OTHER_PAGE, FLAT_PAGE)] == [True, True, False, False]


def test_a_page_added_later_does_not_match(tmp_path):
    pins = Pins(tmp_path / "a.pins.json")
    pins.record([TOOL], shows_apps=True)
    assert not pins.matches(PAGE)


def test_a_page_is_pinned_when_it_is_first_seen(tmp_path):
    pins = Pins(tmp_path / "a.pins.json")
    pins.record([TOOL, {**TOOL, "name": "b"}], shows_apps=False)
    assert pins.matches(PAGE)
    pins.pin_first_pages([PAGE, {**TOOL, "name": "b"}])
    later = Pins(tmp_path / "a.pins.json")
    assert (later.names, later.matches(PAGE), later.matches(OTHER_PAGE)) == (["a", "b"], True, False)
