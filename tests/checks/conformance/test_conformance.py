"""The official conformance suite finds nothing wrong with `servers/everything` and our client, beyond what is
expected.

Where the suite can't be run the tests are skipped and say why; under CI=true they fail.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checks.conformance.legs import LEGS, Leg, Outcome
from tests.checks.conformance.run import run_leg
from tests.checks.conformance.suite import Suite, find_suite


@pytest.fixture(scope="session")
def suite() -> Suite:
    return find_suite()


def each(leg: Leg) -> object:
    return pytest.param(leg, id=leg.name.replace(" ", "-"))


@pytest.mark.timeout(600)  # the first one may have to install the suite
@pytest.mark.parametrize("leg", [each(leg) for leg in LEGS])
async def test_the_suite_finds_no_fault(
    suite: Suite, leg: Leg, record: Callable[[Outcome], None], tmp_path: Path
) -> None:
    outcome = await run_leg(suite, leg, tmp_path / "results")
    record(outcome)
    assert not outcome.complaints, "\n".join([*outcome.faults, outcome.output[-2000:]])
