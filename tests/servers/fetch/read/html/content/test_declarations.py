"""Declared types (schema.org, Open Graph) and descriptions of a page."""

import pytest

from servers.fetch.read.html.content.declarations import combine_declarations


@pytest.mark.parametrize(
    ("things", "graph", "microdata", "about"),
    [
        ([{"@type": "Product"}], {}, [], {"product"}),
        ([{"@type": ["http://schema.org/NewsArticle", "Thing"]}], {}, [], {"article"}),
        ([], {"og:type": "Article"}, [], {"article"}),
        ([], {}, ["https://schema.org/QAPage", "x http://schema.org/FAQPage/"], {"thread", "faq"}),
        ([{"@type": None}, {}], {"og:type": "unknown"}, [""], set()),
    ],
)
def test_declared_types_name_the_kind_of_content(
    things: list[dict[str, object]], graph: dict[str, str], microdata: list[str], about: set[str]
) -> None:
    assert combine_declarations("Title", things, graph, microdata).about == about


def test_descriptions_come_from_nested_things_without_markup() -> None:
    things = [{"name": "Hat", "review": [{"reviewBody": "<b>Warm</b>", "url": "https://x"}], "sku": "1"}]
    assert combine_declarations("", things, {"og:title": "A hat"}, []).descriptions == ["A hat", "Hat", " Warm "]


def test_descriptions_that_are_deep_or_long_are_cut() -> None:
    deep: dict[str, object] = {"name": "inner"}
    for _ in range(50):
        deep = {"name": "outer", "part": deep}
    assert 0 < len(combine_declarations("", [deep], {}, []).descriptions) < 10
    assert sum(map(len, combine_declarations("", [{"name": "x" * 300_000}] * 3, {}, []).descriptions)) == 200_000


def test_parts_that_are_deep_or_long_are_omitted() -> None:
    deep: object = "inner"
    for _ in range(50):
        deep = {"itemListElement": [deep]}
    recipe = {"recipeInstructions": deep, "recipeIngredient": ["x" * 3_000, "2 Eggs", *(["y"] * 200_000), "cut"]}
    assert combine_declarations("", [recipe], {}, []).parts == {"2eggs", "y"}
