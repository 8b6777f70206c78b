"""With our servers every task ends well, and every mistake is mended by one further call."""

from pathlib import Path

import pytest

from tests.checks.tasks.suite import areas, mistakes

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("number", range(5))
def test_every_task_is_verified(number: int, tmp_path: Path) -> None:
    with areas() as every:
        costs = every[number].measure(tmp_path, ours=True).costs
    assert [name for name, cost in costs.items() if not cost.verified] == []


def test_every_error_message_leads_to_the_right_call(tmp_path: Path) -> None:
    reasons = mistakes(tmp_path)
    assert len(reasons) == 30
    assert {name: reason for name, reason in reasons.items() if reason} == {}
