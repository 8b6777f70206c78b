"""`<schema-form>`: a form for each JSON Schema, whose value is exactly the input."""

import base64
from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.checks.browser.conftest import NewPage, Show
from tests.checks.browser.watched import HOSTILE

SCRIPT = """
import { SchemaForm } from "@web/form.js";
const form = new SchemaForm();
document.getElementById("main").append(form);
globalThis.form = form;
globalThis.sent = [];
form.addEventListener("submit", (event) => sent.push(event.detail));
"""
Schema = dict[str, Any]


async def shown(show: Show, properties: Schema, values: Any = None, **rest: Any) -> Page:
    """Shows a form for an object of these properties; `options` are those of `show`, the rest is schema."""
    options = rest.pop("options", {})
    page = await show(SCRIPT, styles=("views.css",))
    schema = {"type": "object", "properties": properties, **rest}
    await page.evaluate(
        "([schema, values, options]) => form.show(schema, values, options)", [schema, values, options]
    )
    return page


async def value(page: Page) -> Any:
    return await page.evaluate("form.value")


async def problems_of(page: Page) -> Any:
    return await page.evaluate("form.validate()")


def box(page: Page, label: str) -> Locator:
    return page.get_by_label(label, exact=True)


async def test_empty_fields_are_omitted(show: Show) -> None:
    kinds = [{"type": kind} for kind in ("string", "integer", "number", "boolean", "array", "object")]
    more: list[Schema] = [
        {"enum": ["a", "b"]},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"enum": ["a", "b"]}},
        {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "string", "format": "date-time"},
        {"type": "string", "contentEncoding": "base64"},
        {"type": "boolean", "default": True},
        {"type": "integer", "default": 5},
        {"const": "x"},
        {},
    ]
    page = await shown(show, {f"p{at}": kind for at, kind in enumerate([*kinds, *more])})
    assert await value(page) == {}
    assert await problems_of(page) == []


async def test_a_missing_required_value_is_reported_at_its_field(show: Show) -> None:
    page = await shown(show, {"path": {"type": "string", "description": "Where it is."}}, required=["path"])
    await expect(box(page, "path")).to_have_attribute("aria-required", "true")
    await expect(box(page, "path")).to_have_accessible_description("Where it is.")
    assert await problems_of(page) == ["path: A value is required."]
    await expect(box(page, "path")).to_have_attribute("aria-invalid", "true")
    await expect(box(page, "path")).to_have_accessible_description(
        "Where it is. A value is required. Send an empty text"
    )
    await box(page, "path").fill("x")
    await expect(box(page, "path")).not_to_have_attribute("aria-invalid", "true")
    assert await value(page) == {"path": "x"}


async def test_an_empty_text_is_sent_on_request(show: Show) -> None:
    page = await shown(show, {"new": {"type": "string"}}, required=["new"])
    await problems_of(page)
    await page.get_by_role("button", name="Send an empty text").click()
    assert await value(page) == {"new": ""}
    assert await problems_of(page) == []


INEXACT = "This number can't be sent exactly; the maximum is 9,007,199,254,740,991."
TYPED: list[tuple[Schema, str, Any]] = [
    ({"type": "integer"}, "12", 12),
    ({"type": "integer"}, "-3.0", -3),
    ({"type": "number"}, "1.5e3", 1500),
    ({"type": "integer"}, "9007199254740991", 9007199254740991),
    ({"type": "integer"}, "1000000000000000000", 1000000000000000000),
    ({"type": "integer"}, "9007199254740993", INEXACT),
    ({"type": "number"}, "-9007199254740993", INEXACT),
    ({"type": "integer"}, "1.5", "Enter a whole number."),
    ({"type": "number"}, "1e999", "The number is too large."),
    ({"type": "number"}, "1,5", "This is not a number."),
    ({"type": "number", "minimum": 2}, "1", "The minimum is 2."),
    ({"type": "number", "exclusiveMaximum": 2}, "2", "Enter less than 2."),
    ({"type": "number", "multipleOf": 0.1}, "0.35", "Enter a multiple of 0.1."),
    ({"type": "number", "multipleOf": 0.1}, "0.3", 0.3),
    ({"type": "string", "maxLength": 2}, "😀😀", "😀😀"),
    ({"type": "string", "maxLength": 2}, "abc", "At most 2 characters are allowed; this has 3."),
    ({"type": "string", "minLength": 2}, "a", "At least 2 characters are required; this has 1."),
    ({"type": "string", "pattern": "^[a-z]+$"}, "A", "This does not match the pattern ^[a-z]+$."),
    ({"type": "string", "format": "email"}, "a", "This is not an email address."),
    ({"type": "string", "format": "email"}, "a@b.c", "a@b.c"),
    ({"type": "string", "format": "uri"}, "x.org", "This is not a URI: it begins with a scheme, as in https://…"),
    ({"type": "string", "format": "date"}, "2026-01-31", "2026-01-31"),
    ({"type": "string", "format": "uuid"}, "1", "This is not a UUID."),
    ({}, '{"a": [1]}', {"a": [1]}),
    ({}, '[9007199254740993, "9007199254740993"]', "The number 9007199254740993 can't be sent exactly."),
    ({"type": "array"}, "{}", "Enter an array: […]."),
]


async def test_typed_values_are_accepted_or_refused(show: Show) -> None:
    page = await shown(show, {})
    for schema, typed, wanted in TYPED:
        await page.evaluate("schema => form.show({properties: {x: schema}})", schema)
        await box(page, "x").fill(typed)
        found = await problems_of(page)
        assert (found or await value(page)) == ([f"x: {wanted}"] if found else {"x": wanted}), (schema, typed)


EXACT: list[tuple[Schema, Any]] = [
    ({"type": "string"}, "line\r\nline\u0000"),
    ({"type": "string"}, ""),
    ({"type": "string", "format": "date-time"}, "2026-01-31T10:20:30.5+05:30"),
    ({"type": "string", "format": "date-time"}, "2026-01-31T10:20Z"),
    ({"type": "string", "format": "date-time"}, "tomorrow"),
    ({"type": "string", "format": "email"}, "two\nlines"),
    ({"type": "string", "contentEncoding": "base64"}, "aGk="),
    ({"type": "integer"}, 0),
    ({"type": "integer"}, "seven"),
    ({"type": "boolean"}, False),
    ({"type": "boolean", "default": True}, True),
    ({"enum": [1, "1", None, {"a": 1}]}, {"a": 1}),
    ({"enum": [1, "1"]}, "1"),
    ({"type": ["string", "null"], "default": "x"}, None),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}, None),
    ({"type": ["string", "integer"]}, 3),
    ({"oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}, "g"),
    ({"anyOf": [{"enum": ["a"]}, {"const": "b"}, {"type": "null"}]}, "b"),
    ({"type": "array", "items": {"type": "string"}}, []),
    ({"type": "array", "items": {"type": "string"}}, ["a", ""]),
    ({"type": "array", "items": {"enum": ["a", "b"]}}, ["b", "a"]),
    ({"type": "array", "items": {"enum": ["a", "b"]}}, ["b", "b"]),
    ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}, ["a", 1]),
    ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, ["a", None]),
    ({"type": "array", "items": {"type": "integer"}}, list(range(1_000))),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1, "b": 2}),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {}),
    ({"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}, {"a": "x", "b": 2}),
    ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": "x", "unknown": [1]}),
    ({"type": "object"}, {"a": {"b": None}}),
    ({"$ref": "#/$defs/Node"}, {"name": "a", "next": {"name": "b", "next": {"name": "c"}}}),
    ({"allOf": [{"$ref": "#/$defs/Node"}], "description": "x"}, {"name": "a"}),
    ({"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}, {"kind": "dog", "barks": True}),
    ({"$ref": "https://example.org/elsewhere.json"}, {"x": 1}),
    ({"$ref": "#/$defs/Circle"}, "anything"),
    ({}, None),
    (True, {"x": 1}),  # type: ignore[list-item]
]
DEFINITIONS: Schema = {
    "Node": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
        "required": ["name"],
    },
    "Cat": {
        "type": "object",
        "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
        "required": ["kind"],
    },
    "Dog": {
        "type": "object",
        "properties": {"kind": {"const": "dog"}, "barks": {"type": "boolean"}},
        "required": ["kind"],
    },
    "Circle": {"$ref": "#/$defs/Circle"},
}


async def test_given_values_are_returned_unchanged(show: Show) -> None:
    page = await shown(show, {})
    for schema, given in EXACT:
        whole = {"type": "object", "properties": {"x": schema}, "$defs": DEFINITIONS}
        await page.evaluate("([schema, values]) => form.show(schema, values)", [whole, {"x": given}])
        assert await value(page) == {"x": given}, schema


async def test_defaults_are_shown_and_left_to_the_server(show: Show) -> None:
    page = await shown(show, {"n": {"type": "integer", "default": 5}, "mode": {"enum": ["a", "b"], "default": "b"}})
    await expect(box(page, "n")).to_have_attribute("placeholder", "5")
    await expect(page.locator("option").first).to_have_text("default: b")
    assert await value(page) == {}


async def test_defaults_are_filled_in_on_request(show: Show) -> None:
    properties = {"n": {"type": "integer", "default": 5}, "yes": {"type": "boolean", "default": True}}
    assert await value(await shown(show, properties, options={"prefill": True})) == {"n": 5, "yes": True}


async def test_null_can_be_sent_instead_of_a_default(show: Show) -> None:
    page = await shown(show, {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5}})
    await page.get_by_role("button", name="Send null for n").click()
    assert await value(page) == {"n": None}
    await box(page, "n").fill("7")
    assert await value(page) == {"n": 7}


async def test_an_empty_required_nullable_field_is_null(show: Show) -> None:
    page = await shown(show, {"n": {"type": ["integer", "null"]}}, required=["n"])
    assert await value(page) == {"n": None}
    assert await problems_of(page) == []


async def test_choices_are_shown_by_their_titles(show: Show) -> None:
    page = await shown(show, {"c": {"enum": [1, 2], "enumNames": ["One", "Two"], "title": "Count"}})
    await box(page, "Count").select_option("Two")
    assert await value(page) == {"c": 2}


async def test_multiple_choices_are_checkboxes_in_the_order_of_choice(show: Show) -> None:
    page = await shown(show, {"c": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 2}})
    for name in "cab":
        await page.get_by_role("group", name="c").get_by_role("checkbox", name=name, exact=True).check()
    assert await value(page) == {"c": ["c", "a", "b"]}
    assert await problems_of(page) == ["c: At most 2 items are allowed."]


async def test_items_are_added_filled_in_and_removed(show: Show) -> None:
    page = await shown(show, {"paths": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}})
    for text in ("a", "b", "a"):
        await page.get_by_role("button", name="Add an item to paths").click()
        await page.keyboard.type(text)
    assert await value(page) == {"paths": ["a", "b", "a"]}
    assert await problems_of(page) == ["paths: No two items may be the same."]
    await page.get_by_role("button", name="Remove item 1 of paths").click()
    assert await value(page) == {"paths": ["b", "a"]}
    assert await problems_of(page) == []


async def test_objects_in_a_list_have_nested_forms(show: Show) -> None:
    edit = {"type": "object", "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}}}
    edit["required"] = ["oldText"]  # type: ignore[assignment]
    page = await shown(show, {"edits": {"type": "array", "items": {"$ref": "#/$defs/E"}}}, **{"$defs": {"E": edit}})
    await page.get_by_role("button", name="Add an item to edits").click()
    assert await problems_of(page) == ["oldText: A value is required."]
    await page.get_by_role("group", name="edits 1").get_by_label("oldText").fill("two\nlines")
    assert await value(page) == {"edits": [{"oldText": "two\nlines"}]}


async def test_an_optional_object_exists_once_it_is_added(show: Show) -> None:
    page = await shown(show, {"a": {"$ref": "#/$defs/Node"}}, **{"$defs": DEFINITIONS})
    await page.get_by_role("button", name="Add a").click()
    assert await problems_of(page) == ["name: A value is required."]
    await page.get_by_role("button", name="Add next").click()
    assert await value(page) == {"a": {"next": {}}}
    await page.get_by_role("button", name="Remove a").click()
    assert await value(page) == {}


async def test_entries_of_a_map_have_names(show: Show) -> None:
    page = await shown(show, {"env": {"type": "object", "additionalProperties": {"type": "integer"}}})
    for at, name in enumerate(["a", "__proto__", "a"], 1):
        await page.get_by_role("button", name="Add an entry to env").click()
        await page.get_by_label(f"Name {at} of env").fill(name)
        await page.get_by_label(f"Value {at} of env").fill(str(at))
    assert await problems_of(page) == ["env: No two entries may have the same name."]
    await page.get_by_role("button", name="Remove entry 3 of env").click()
    assert await page.evaluate("JSON.stringify(form.value)") == '{"env":{"a":1,"__proto__":2}}'


async def test_the_type_of_a_union_is_chosen_first(show: Show) -> None:
    page = await shown(
        show, {"pet": {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}}, **{"$defs": DEFINITIONS}
    )
    await page.get_by_label("Kind of pet").select_option("dog")
    await page.get_by_label("barks").select_option("true")
    assert await value(page) == {"pet": {"kind": "dog", "barks": True}}
    await page.get_by_label("Kind of pet").select_option("cat")
    assert await value(page) == {"pet": {"kind": "cat"}}


async def test_a_date_time_has_an_offset(show: Show, new_page: NewPage) -> None:
    page = await show(SCRIPT, into=await new_page(timezone_id="Asia/Kolkata"))
    await page.evaluate("form.show({properties: {at: {type: 'string', format: 'date-time'}}})")
    await box(page, "at").fill("2026-01-31T10:20:00")
    assert await value(page) == {"at": "2026-01-31T10:20:00+05:30"}
    await page.get_by_label("Offset from UTC for at").select_option("UTC")
    assert await value(page) == {"at": "2026-01-31T10:20:00Z"}


async def test_a_file_is_sent_in_base64(show: Show, tmp_path: Path) -> None:
    content = bytes(range(256)) * 100
    (tmp_path / "some.bin").write_bytes(content)
    page = await shown(show, {"f": {"type": "string", "contentEncoding": "base64"}}, required=["f"])
    await box(page, "f").set_input_files(tmp_path / "some.bin")
    await expect(page.get_by_role("status")).to_have_text("some.bin, 25,600 bytes")
    assert await value(page) == {"f": base64.b64encode(content).decode()}
    await page.get_by_role("button", name="Remove the file of f").click()
    assert await problems_of(page) == ["f: A value is required."]


async def test_a_valid_form_is_sent(show: Show) -> None:
    page = await shown(
        show, {"a": {"type": "string"}, "b": {"type": "integer"}}, required=["b"], options={"action": "Run"}
    )
    await box(page, "a").fill("x")
    await box(page, "a").press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("1 field needs attention.")
    await expect(box(page, "b")).to_be_focused()
    await box(page, "b").fill("3")
    await page.get_by_role("button", name="Run").click()
    assert await page.evaluate("sent") == [{"a": "x", "b": 3}]


async def test_a_text_may_have_lines_and_control_enter_sends_it(show: Show) -> None:
    page = await shown(show, {"sql": {"type": "string"}, "name": {"type": "string"}})
    await box(page, "sql").press_sequentially("a\nb")
    await box(page, "name").press("Shift+Enter")
    await box(page, "sql").press("Control+Enter")
    assert await page.evaluate("sent") == [{"sql": "a\nb", "name": "\n"}]


async def test_an_invalid_value_is_reported_when_its_field_loses_focus(show: Show) -> None:
    page = await shown(show, {"n": {"type": "integer"}, "needed": {"type": "string"}}, required=["needed"])
    await box(page, "n").fill("x")
    await box(page, "needed").focus()
    await expect(box(page, "n")).to_have_attribute("aria-invalid", "true")
    await box(page, "n").focus()
    await expect(box(page, "needed")).not_to_have_attribute("aria-invalid", "true")


async def test_a_form_can_be_edited_as_json_and_back(show: Show) -> None:
    page = await shown(show, {"n": {"type": "integer"}})
    await box(page, "n").fill("3")
    await page.get_by_role("button", name="Edit as JSON").click()
    text = page.get_by_label("Arguments as JSON")
    await expect(text).to_have_value('{\n  "n": 3\n}')
    await text.fill("[")
    assert (await problems_of(page))[0].startswith("This is not JSON")
    await expect(text).to_have_attribute("aria-invalid", "true")
    await text.fill('{"n": 4}')
    await page.get_by_role("button", name="Edit as a form").click()
    await expect(box(page, "n")).to_have_value("4")


async def test_values_without_a_field_stay_as_json(show: Show) -> None:
    page = await shown(show, {"n": {"type": "integer"}}, {"n": "seven", "more": 1})
    await expect(page.get_by_text("These values do not fit the form.")).to_be_visible()
    assert await value(page) == {"n": "seven", "more": 1}


async def test_texts_are_completed_during_typing(show: Show) -> None:
    page = await show(SCRIPT)
    await page.evaluate(
        "form.show({properties: {a: {type: 'string'}}}, undefined,"
        " {complete: async (name, text) => [`${name} ${text}1`, '<b>']})"
    )
    await box(page, "a").fill("x")
    await expect(page.locator("datalist option[value='a x1']")).to_have_count(1)


async def test_a_schema_without_properties_has_no_fields(show: Show) -> None:
    page = await show(SCRIPT)
    for schema in ("{}", "null", "{type: 'object'}", "{type: 'object', properties: {}, additionalProperties: false}"):
        await page.evaluate(f"form.show({schema})")
        await expect(page.get_by_text("No input is required.")).to_be_visible()
        assert await value(page) == {}


async def test_hostile_schemas_are_text(show: Show) -> None:
    properties: Schema = {}
    for at, text in enumerate(HOSTILE):
        properties[text] = {"type": "string", "title": text, "description": text, "default": text, "pattern": text}
        properties[f"choice {at}"] = {"enum": [text, f"{text}2"], "enumNames": [text, text]}
        properties[f"union {at}"] = {"anyOf": [{"type": "string", "title": text}, {"type": "integer"}]}
        properties[f"list {at}"] = {
            "type": "array",
            "title": text,
            "items": {"type": "string", "contentMediaType": text},
        }
    page = await shown(show, properties)
    await problems_of(page)
    await expect(page.get_by_text("<img src=x onerror=canary()>", exact=True).first).to_be_visible()
    assert await page.locator("main").locator("img, script, iframe, a, style, svg").count() == 0


async def test_a_slow_pattern_is_left_to_the_server(show: Show) -> None:
    slow = ["^(a+)+$", "^(a|a)*$", "^a?a?a?a?a?a?a?a?a?a?aaaaaaaaaa$", "a*a*a*a*a*$", "("]
    page = await shown(show, {f"p{at}": {"type": "string", "pattern": pattern} for at, pattern in enumerate(slow)})
    for at in range(len(slow)):
        await box(page, f"p{at}").fill("a" * 200 + "!")
    assert await problems_of(page) == []


async def test_10000_properties_are_loaded_in_parts(show: Show) -> None:
    properties = {f"p{at}": {"type": "string"} for at in range(10_000)}
    page = await shown(show, properties, required=["p9999"])
    await expect(page.locator("textarea")).to_have_count(100)
    await expect(box(page, "p9999")).to_be_visible()
    await page.get_by_role("button", name="Show 9900 more").or_(page.get_by_text("Show 9,900 more")).click()
    await expect(page.locator("textarea")).to_have_count(200)


async def test_10000_choices_are_typed_with_500_suggestions(show: Show) -> None:
    page = await shown(show, {"c": {"enum": [f"choice {at}" for at in range(10_000)]}})
    await expect(page.locator("option")).to_have_count(500)
    await box(page, "c").fill("choice 9999")
    assert await value(page) == {"c": "choice 9999"}
    await box(page, "c").fill("choice 10000")
    assert await problems_of(page) == ["c: This is not one of its values."]


async def test_a_recursive_schema_ends(show: Show) -> None:
    node: Schema = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}, "required": ["next"]}
    page = await shown(show, {"n": {"$ref": "#/$defs/N"}}, required=["n"], **{"$defs": {"N": node}})
    await expect(page.locator("textarea")).to_have_count(1)
    assert len(await problems_of(page)) == 1


async def test_a_form_fits_a_phone(show: Show, new_page: NewPage) -> None:
    page = await show(SCRIPT, styles=("views.css",), into=await new_page(viewport={"width": 390, "height": 800}))
    properties: Schema = {"x" * 80: {"type": "string", "description": "y" * 200}}
    properties["list"] = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}
    properties["map"] = {"type": "object", "additionalProperties": {"type": "string"}}
    properties["at"] = {"type": "string", "format": "date-time"}
    values = {"list": [{"a": "b"}], "map": {"k": "v"}}
    await page.evaluate("([properties, values]) => form.show({properties}, values)", [properties, values])
    assert await page.evaluate("document.documentElement.scrollWidth") == 390
