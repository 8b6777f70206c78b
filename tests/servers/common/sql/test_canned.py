"""Files of canned queries."""

import re
from pathlib import Path

import pytest

from servers.common.sql.canned import Definition, QueryParameter, parse_definition
from servers.sqlite.engine.sql import find_parameters

WHOLE = """---
name: of_region
description: Sales of a region.
parameters:
  region: {type: string, description: its name}
  year: {type: integer, default: 2024}
  least: {type: number, optional: true}
writable: true
database: sales
---
SELECT * FROM sales WHERE region = :region AND year = :year AND ':no' <> '' AND amount >= ifnull(:least, 0) -- :no
"""


def front(*lines: str, sql: str = "SELECT 1") -> str:
    return "\n".join(("---", "description: Something.", *lines, "---", sql))


def test_a_definition_with_all_fields_is_parsed() -> None:
    definition = parse_definition(WHOLE, "file", find_parameters)
    parameters = (
        QueryParameter("region", "string", "its name", False, None),
        QueryParameter("year", "integer", None, True, 2024),
        QueryParameter("least", "number", None, True, None),
    )
    sql = WHOLE.split("---\n")[2].strip()
    assert definition == Definition("of_region", "Sales of a region.", parameters, True, "sales", sql)


def test_the_example_of_the_readme_is_parsed() -> None:
    readme = Path(__file__).resolve().parents[4] / "servers/sqlite/README.md"
    example = re.search(r"```sql\n(---.*?)```", readme.read_text(), re.DOTALL)
    assert example is not None
    assert [parameter.name for parameter in parse_definition(example[1], "orders", find_parameters).parameters] == [
        "customer",
        "since",
    ]


def test_optional_fields_have_defaults() -> None:
    assert parse_definition(front(), "file", find_parameters) == Definition(
        "file", "Something.", (), False, None, "SELECT 1"
    )


def test_crlf_and_a_byte_order_mark_are_accepted() -> None:
    for text in (WHOLE.replace("\n", "\r\n"), "\ufeff" + WHOLE):
        assert parse_definition(text, "file", find_parameters).name == "of_region"


WRONG = [
    ("SELECT 1", "must begin with front matter"),
    ("---\ndescription: x\nSELECT 1", "must begin with front matter"),
    (front("a: [", sql="SELECT 1"), "is not YAML"),
    ("---\n- a\n---\nSELECT 1", "is not a mapping"),
    (front("writable: yes"), "writable is not a bool"),
    ("---\n!!python/object/apply:os.getcwd []\n---\nSELECT 1", "has a tag"),
    ("---\nname: a\n---\nSELECT 1", "has no description"),
    (front("writeable: true"), "'writeable', which is not a known key"),
    (front("writable: 1"), "writable is not a bool"),
    (front("name: a b"), "'a b' is not a valid tool name"),
    (front("parameters: {a: integer}", sql="SELECT :a"), "'a' is not a mapping"),
    (front("parameters: {a: {type: int}}", sql="SELECT :a"), "'a' has no type"),
    (front("parameters: {_a: {type: integer}}", sql="SELECT :_a"), "'_a' has no name of letters"),
    (front("parameters: {a: {type: integer, default: true}}", sql="SELECT :a"), "its default is not of type integer"),
    (front(sql="SELECT :a"), "has the parameter :a, which the front matter does not declare"),
    (front("parameters: {a: {type: integer}}"), "the SQL has no :a"),
    (front("parameters: {a: {type: integer}}", sql="SELECT ?"), "has the parameter ?;"),
    (front("parameters: {cursor: {type: string}}", sql="SELECT :cursor"), "can't be called 'cursor'"),
]


def test_invalid_definitions_are_refused_with_the_reason() -> None:
    for text, reason in WRONG:
        with pytest.raises(ValueError, match=re.escape(reason)):
            parse_definition(text, "file", find_parameters)
