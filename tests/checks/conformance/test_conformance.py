"""The official conformance suite finds nothing wrong with `servers/everything` and our client, beyond what is
expected.

Where the suite can't be run the tests are skipped and say why; under CI=true they fail.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.checks.conformance.legs import LEGS, Leg, Outcome
from tests.checks.conformance.run import run_leg
from tests.checks.conformance.suite import Suite, find_suite
from tests.npm import Unavailable


@pytest.fixture(scope="session")
def suite() -> Suite:
    try:
        return find_suite()
    except Unavailable as error:
        give_up(error)


def give_up(error: Unavailable) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(str(error))
    pytest.skip(str(error))


def each(leg: Leg) -> object:
    return pytest.param(leg, id=leg.name.replace(" ", "-"))


@pytest.mark.timeout(600)  # the first one may have to install the suite
@pytest.mark.parametrize("leg", [each(leg) for leg in LEGS])
async def test_the_suite_finds_nothing_wrong(
    suite: Suite, leg: Leg, record: Callable[[Outcome], None], tmp_path: Path
) -> None:
    try:
        outcome = await run_leg(suite, leg, tmp_path / "results")
    except Unavailable as error:
        give_up(error)
    record(outcome)
    assert not outcome.complaints, "\n".join([*outcome.faults, outcome.output[-2000:]])
