"""The description of a table or view."""

import pytest

from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.schema.table import TableDescription, TableRequest, format_table
from servers.postgres.schema.table import describe
from tests.servers.postgres.asking import looking
from tests.servers.postgres.databases import Database

LIMITS = AnswerLimits(100, 200_000, 1_000)


async def describe_relation(
    database: Database,
    table: str,
    *,
    sample: int = 0,
    statistics: bool = False,
    user: str = "reader",
    seconds: float = 30,
) -> TableDescription:
    async with looking(database.server.url(database.name, user)) as session:
        return await describe(TableRequest(table, sample, statistics), LIMITS, session, seconds)


async def test_columns_types_keys_and_indexes_are_described(sample: Database) -> None:
    description = await describe_relation(sample, "customer")
    columns = {one["name"]: one for one in description["columns"]}
    assert columns["id"] == {
        "name": "id",
        "type": "integer",
        "not_null": True,
        "default": None,
        "primary_key": 1,
        "kind": "generated always as identity",
    }
    assert columns["search"]["kind"] == "generated stored"
    assert columns["mood"]["comment"] == "How they felt at their last visit"
    assert columns["mood"]["default"] == "'ok'::mood"
    assert (await describe_relation(sample, "customer"))["sections"]["types"] == [
        "address: (street text, city text, zip character varying(10))",
        "email: domain of text CHECK ((VALUE ~ '^[^@ ]+@[^@ ]+$'::text))",
        "mood: enum ('sad', 'ok', 'happy')",
    ]
    (key,) = (await describe_relation(sample, "refund"))["foreign_keys"]
    assert (key["columns"], key["to_columns"]) == (["order_id", "line"], ["order_id", "line"])
    (reference,) = (await describe_relation(sample, "order_line"))["referenced_by"]
    assert reference == key
    description = {one["name"]: one for one in (await describe_relation(sample, "product"))["indexes"]}
    assert description["product_pkey"]["origin"] == "PRIMARY KEY"
    on_sale = description["product_on_sale"]
    assert (on_sale["partial"], on_sale["unique"], on_sale["origin"]) == (True, False, "CREATE INDEX")
    assert on_sale["columns"] == ["category", "price"]
    assert str(on_sale["sql"]).endswith("(category, price DESC) WHERE (NOT discontinued)")


async def test_key_columns_are_numbered_in_key_order(workshop: Database) -> None:
    workshop.run("CREATE TABLE turned (a integer, b integer, PRIMARY KEY (b, a))", user="owner")
    description = await describe_relation(workshop, "turned", user="owner")
    assert {one["name"]: one["primary_key"] for one in description["columns"]} == {"a": 2, "b": 1}


async def test_an_invalid_index_is_marked(workshop: Database) -> None:
    workshop.run("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'product_details'::regclass")
    (sql,) = [
        one["sql"]
        for one in (await describe_relation(workshop, "product"))["indexes"]
        if one["name"] == "product_details"
    ]
    assert str(sql).endswith("-- not valid: no query uses it; REINDEX, or drop it")


async def test_a_partition_has_the_keys_of_its_partitioned_table(sample: Database) -> None:
    whole, part = await describe_relation(sample, "visit"), await describe_relation(sample, "visit_2024")
    assert whole["sections"]["partitioned by"] == ["RANGE (at)"]
    assert whole["sections"]["partitions"][0] == "visit_2024 FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')"
    assert part["sections"]["partition of"] == ["visit FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')"]
    assert [key["to_table"] for key in part["foreign_keys"]] == ["customer"]
    assert [one["origin"] for one in part["indexes"]] == ["PRIMARY KEY"]


async def test_constraints_triggers_and_inheritance_are_described(sample: Database) -> None:
    assert (await describe_relation(sample, "payment"))["sections"]["constraints"] == [
        "payment_id_excl EXCLUDE USING btree (id WITH =)"
    ]
    stock = await describe_relation(sample, "warehouse.stock")
    assert stock["sections"]["constraints"] == ["stock_quantity_check CHECK ((quantity >= 0))"]
    assert "EXECUTE FUNCTION warehouse.note()" in stock["triggers"][0]
    assert (await describe_relation(sample, "company"))["sections"]["inherits from"] == ["category"]
    assert (await describe_relation(sample, "category"))["sections"]["inherited by"] == ["company"]


async def test_policies_are_described_and_whether_they_apply_to_the_role(workshop: Database) -> None:
    workshop.run(
        "ALTER TABLE product ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY cheap ON product FOR SELECT TO reader, writer USING (price < 10)",
        user="owner",
    )
    description = await describe_relation(workshop, "product", sample=100)
    assert description["sections"]["policies"] == [
        "cheap permissive for select to reader, writer using ((price < (10)::numeric))"
    ]
    assert description["facts"] == ["row-level security: the role sees only the rows that the policies allow"]
    assert description["sample"] is not None
    assert len(description["sample"]["rows"]) == 7
    assert (await describe_relation(workshop, "product", user="owner"))["facts"] == [
        "row-level security, but not for this role"
    ]


async def test_a_view_has_its_query(sample: Database) -> None:
    description = await describe_relation(sample, "sale")
    assert description["sql"].startswith("CREATE VIEW sale AS\n SELECT o.id AS order_id,")
    assert (await describe_relation(sample, "cheap"))["sections"]["options"] == [
        "security_barrier=true, check_option=cascaded"
    ]
    assert (await describe_relation(sample, "best_customer"))["sql"].startswith(
        "CREATE MATERIALIZED VIEW best_customer AS"
    )


async def test_every_type_has_statistics(sample: Database) -> None:
    description = (await describe_relation(sample, "value_of_each_type", sample=1, statistics=True))["statistics"]
    assert description is not None
    assert description["rows_examined"] == 4
    by_column = {one["column"]: one for one in description["columns"]}
    assert len(by_column) == 45
    assert by_column["small"] == {"column": "small", "nulls": 2, "distinct": 2, "min": -32768, "max": 0}
    assert by_column["big"]["max"] == {"type": "int8", "value": "9223372036854775807"}
    assert by_column["feeling"]["max"] == "happy"
    assert by_column["yes"]["min"] is False
    assert by_column["mail"]["max"] == "a@b.c"
    assert by_column["moods"]["max"] == "{sad,happy}"
    # These types can't be compared, or have no known comparison.
    assert [one["column"] for one in description["columns"] if one["distinct"] is None] == [
        "document", "j", "path", "addresses", "point", "box", "home",
    ]  # fmt: skip


async def test_only_readable_columns_have_samples_and_statistics(workshop: Database) -> None:
    workshop.run(
        "CREATE TABLE half (open integer, closed text); INSERT INTO half VALUES (1, 'secret');"
        "GRANT SELECT (open) ON half TO reader; CREATE TABLE shut (x text); INSERT INTO shut VALUES ('secret')",
        user="owner",
    )
    half = await describe_relation(workshop, "half", sample=2, statistics=True)
    assert half["sample"] == {"columns": ["open"], "rows": [(1,)]}
    assert half["statistics"] is not None
    assert [one["column"] for one in half["statistics"]["columns"]] == ["open"]
    shut = await describe_relation(workshop, "shut", sample=2, statistics=True)
    assert shut["facts"] == ["the role of this server may not read it"]
    assert (shut["sample"], shut["statistics"], shut["left_out"]) == (None, None, {"sample": 2})
    assert "secret" not in format_table(half) + format_table(shut)


async def test_a_failing_view_is_described_with_the_problem(workshop: Database) -> None:
    workshop.run("CREATE VIEW broken AS SELECT 1 / (id - id) AS x FROM customer", user="owner")
    description = await describe_relation(workshop, "broken", sample=1, statistics=True, user="owner")
    assert [one["name"] for one in description["columns"]] == ["x"]
    assert "division by zero" in str(description["problem"])


@pytest.mark.slow
async def test_statistics_after_the_timeout_come_from_analyze(workshop: Database) -> None:
    workshop.run("CREATE TABLE wide AS SELECT n, md5(n::text) AS t FROM generate_series(1, 3000) AS n; ANALYZE wide")
    description = await describe_relation(workshop, "wide", statistics=True, user="postgres", seconds=0)
    assert description["statistics"] == {
        "rows_examined": 0,
        "partial": True,
        "columns": [
            {"column": "n", "nulls": 0, "distinct": 3000, "min": 1, "max": 3000},
            {"column": "t", "nulls": 0, "distinct": 3000, "min": description["statistics"]["columns"][1]["min"],  # type: ignore[index]
             "max": description["statistics"]["columns"][1]["max"]},  # type: ignore[index]
        ],
    }  # fmt: skip


@pytest.mark.slow
async def test_an_endless_view_is_described_without_rows(workshop: Database) -> None:
    workshop.run(
        "CREATE VIEW endless AS SELECT count(*) AS n FROM generate_series(1, 1000000), generate_series(1, 9999) AS b",
        user="owner",
    )
    description = await describe_relation(workshop, "endless", sample=1, statistics=True, user="owner", seconds=1)
    assert [one["name"] for one in description["columns"]] == ["n"]
    omitted = {"sample": 1, "statistics": 1}
    assert (description["sample"], description["statistics"], description["left_out"]) == (None, None, omitted)
    description = await describe_relation(workshop, "endless", statistics=True, user="owner", seconds=1)
    assert description["statistics"] == {"rows_examined": 0, "partial": True, "columns": []}


async def test_a_row_that_is_too_large_for_a_sample_is_no_problem_of_the_table(workshop: Database) -> None:
    workshop.run("CREATE TABLE large AS SELECT repeat('x', 17000000)::bytea AS x", user="owner")
    description = await describe_relation(workshop, "large", sample=1, statistics=True, user="owner")
    assert (description["sample"], description["problem"], description["left_out"].get("sample")) == (None, None, 1)
    assert (description["statistics"] is None) == ("statistics" in description["left_out"])


async def test_a_small_answer_counts_the_omitted_columns(sample: Database) -> None:
    async with looking(sample.reader) as session:
        request = TableRequest("value_of_each_type", 3, True)
        description = await describe(request, AnswerLimits(100, 2_000, 1_000), session, 30)
    assert description["left_out"]["columns"] > 5
    assert (description["left_out"]["sample"], description["statistics"] is None) == (3, False)
    assert len(format_table(description)) < 2_000


async def test_text_of_the_database_is_fenced(sample: Database) -> None:
    text = format_table(await describe_relation(sample, "product", sample=1, statistics=True))
    head, _, rest = text.partition("\n")
    mark = rest.partition(">")[0].removeprefix("<")
    assert "IMPORTANT" not in head
    assert rest.endswith(f"</{mark}>")
    assert "\x1b" not in text
