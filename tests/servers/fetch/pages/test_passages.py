"""Passages of a text that match a question."""

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.pages.passages import find_passages

FILLER = "The weather of the coast is mild in winter, and in summer a wind comes from the sea. "
MANUAL = f"""# Ovens

{FILLER * 5}

## Cleaning

{FILLER * 5}

Crusts are loosened with warm vinegar, and wiped off.

## Baking

{FILLER * 5}

```sh
# Heating
oven --heat 230
```
"""


def test_a_passage_follows_its_start_index_and_headings() -> None:
    parts = find_passages(MANUAL, "How do I loosen a crust?", 200)
    start = MANUAL.index("Crusts")
    assert (
        parts.text == f"[start_index {start}] Ovens > Cleaning\nCrusts are loosened with warm vinegar, and wiped off."
    )
    assert (parts.starts, parts.shown, parts.total) == ((start,), 1, 1)


def test_a_number_sign_in_code_is_not_a_heading() -> None:
    parts = find_passages(MANUAL, "heat 230", 300)
    assert parts.text.endswith("Ovens > Baking\n```sh\n# Heating\noven --heat 230\n```")


def test_the_best_passages_that_fit_keep_the_order_of_the_text() -> None:
    text = "\n\n".join(
        [f"Rye. {FILLER * 4}", f"Rye bread with rye and rye. {FILLER * 3}", f"Bread and rye. {FILLER * 3}"]
    )
    assert find_passages(text, "rye bread", 10_000).shown == 3
    assert find_passages(text, "rye bread", 10_000).text.index("Rye bread") < 500
    (start,) = find_passages(text, "rye bread", 330).starts
    assert text[start:].startswith("Rye bread with rye")


def test_the_best_passage_is_cut_if_none_fits() -> None:
    assert find_passages(f"Rye. {FILLER * 5}", "rye", 30).text == f"[start_index 0]\nRye. {FILLER}"[:30]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (
            "設定を変更できます。\n\n" + "天気は穏やかです。" * 100 + "\n\n性能の低下を招きます。",
            "性能が低下しますか",
        ),
        ("天气很好。" * 100 + "\n\n数据库会自动备份。", "数据库备份"),
        ("날씨가 좋습니다. " * 100 + "\n\n오류 로그의 위치를 지정한다.", "오류로그 위치"),
        ("Il fait beau. " * 100 + "\n\nLe café est fermé.", "CAFE ferme"),
    ],
)
def test_words_match_without_spaces_and_regardless_of_accents(text: str, question: str) -> None:
    answer = text.rpartition("\n\n")[2]
    assert answer in find_passages(text, question, 300).text


def test_a_text_without_the_words_and_a_question_without_words_are_refused() -> None:
    with pytest.raises(FetchError, match="none of these words") as caught:
        find_passages(MANUAL, "submarine", 500)
    assert caught.value.code == "not_found"
    with pytest.raises(FetchError, match="no word") as caught:
        find_passages(MANUAL, '?! "', 500)
    assert (caught.value.code, caught.value.suggestion) == ("bad_argument", "Describe in words what to find.")


def test_query_syntax_in_a_question_is_literal() -> None:
    for question in ('vinegar" OR x', "vinegar* NEAR(", "body: vinegar", "vinegar AND NOT"):
        assert "vinegar" in find_passages(MANUAL, question, 300).text


def test_lone_surrogates_and_nul_characters_are_searched() -> None:
    assert find_passages("a \ud800 rye\0 \n", "rye \udfff", 100).total == 1


@pytest.mark.slow
@pytest.mark.parametrize("text", ["b\n\n" * 333_000, "# a\n\nb\n\n" * 125_000, "rye " * 250_000, "漢" * 1_000_000])
def test_a_hostile_text_is_searched_quickly(text: str) -> None:
    assert find_passages(text, "what is a b rye 漢漢 the", 1_000).shown >= 1
