"""What `make bench` makes of its samples: medians, ratios and verdicts, and the score of an extracted text."""

import pytest

from tests.checks.benchmarks import growth, targets
from tests.checks.benchmarks.fetch_articles import plain, score, words_of
from tests.checks.benchmarks.report import table
from tests.checks.benchmarks.results import Results
from tests.checks.benchmarks.run import MEASURES

START, PING = targets.START.name, targets.PING_SINGLE.name
MACHINE = {"cores": 2, "memory, GiB": 4.0, "system": "Linux", "versions": {"Python": "3.11"}}
TRUE = "one two three four five six"


def results(**samples: dict[str, list[float]]) -> Results:
    names = {"start": START, "ping": PING, "idle": targets.IDLE.name}
    return Results("today", 3, MACHINE, {names[key]: servers for key, servers in samples.items()})


def row_of(text: str, name: str) -> list[str]:
    [line] = [line for line in text.splitlines() if line.startswith(f"| {name} ")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_ratio_is_the_median_over_all_rounds() -> None:
    found = results(start={"ours": [1.0, 2.0, 30.0], "SDK": [2.0, 10.0, 40.0]})
    assert (found.median(START, "ours"), found.spread(START, "ours")) == (2.0, (1.0, 30.0))
    assert (found.ratio(START, "ours", "SDK"), found.ratio(START, "ours", "npm")) == (0.5, None)


def test_lower_is_better_for_times_and_higher_for_rates() -> None:
    for npm, verdicts in ([100.0], ("yes", "no")), ([50.0], ("no", "no")), ([], ("?", "no")):
        cells = row_of(table(results(start={"ours": [35.0], "SDK": [100.0], "npm": npm}), MEASURES), START)
        assert (cells[-3], cells[-1]) == verdicts
    cells = row_of(table(results(ping={"ours": [450.0], "SDK": [100.0], "floor": [1_000.0]}), MEASURES), PING)
    assert cells[-4:] == [">= 4 x SDK", "yes", ">= 0.5 x floor", "no"]
    cells = row_of(table(results(idle={"ours": [13.0, 11.5]}), MEASURES), targets.IDLE.name)
    assert cells[-4:] == ["<= 12 MiB", "no", "–", "–"]


def test_every_row_is_measured_by_one_series() -> None:
    assert len({row.name for row in MEASURES}) == len(MEASURES)


@pytest.mark.parametrize("power", [1, 2])
def test_an_exponent_comes_from_the_last_three_sizes(power: int) -> None:
    costs = {1: 500.0, **{size: 3.0 * size**power for size in (10, 100, 1_000)}}
    assert growth.exponent(costs) == pytest.approx(power)


@pytest.mark.parametrize(
    ("found", "precision", "recall"),
    [(TRUE, 1, 1), (f"{TRUE} seven eight nine", 1 / 2, 1), ("two three four five", 1, 1 / 3), ("else", 0, 0)],
)
def test_a_text_is_compared_by_runs_of_four_words(found: str, precision: float, recall: float) -> None:
    # The second page is there so that neither share is 0 in all.
    scored = score([(TRUE, found), (TRUE, TRUE)])
    assert (scored.precision, scored.recall) == pytest.approx(((precision + 1) / 2, (recall + 1) / 2))


def test_markup_does_not_count_as_words() -> None:
    markdown = (
        "## A *fine* __day__\n\n![a ship](https://a.example/ship.png) sails [the book](https://a.example/b_(c))"
    )
    assert words_of(plain(markdown)) == ["A", "fine", "day", "sails", "the", "book"]
