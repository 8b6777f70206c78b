"""A leg that failed, or ran too little, is told from one that passed."""

import json
from pathlib import Path

import pytest

from tests.checks.conformance.legs import LEGS, Leg, read_outcome

SCORED = Leg("scored", (), scenarios=2, scored=1)
PASSED_ON = Leg("passed on", (), scenarios=2, way="chained", excluded={"closing": "it is no message"})
UNSCORED = "Not scored for 2026-07-28: 1 scenario(s) run, {} failing. These do not affect conformance."


@pytest.mark.parametrize(
    ("leg", "output", "scenarios", "complaints"),
    [
        (Leg("tried", (), 2), "", {"ping": ["SUCCESS", "INFO"], "skills": ["SKIPPED"]}, []),
        (Leg("tried", (), 2), "", {"ping": ["SUCCESS"]}, ["1 scenarios were run, not 2"]),
        (Leg("tried", (), 2), "", {"ping": ["SUCCESS"], "caching": ["WARNING"]}, ["1 warnings"]),
        (SCORED, UNSCORED.format(1), {"ping": ["SUCCESS"], "extra": ["FAILURE"]}, []),
        (
            SCORED,
            UNSCORED.format(0),
            {"ping": ["FAILURE"], "extra": ["SUCCESS"]},
            ["(0, 1) of 1 scored scenarios are fine"],
        ),
        (PASSED_ON, "", {"ping": ["SUCCESS"], "closing": ["FAILURE"]}, []),
        (PASSED_ON, "", {"ping": ["SUCCESS"], "closing": ["SUCCESS"]}, ["[] did not pass, where ['closing'] can't"]),
        (
            Leg("tried", (), 1, "client", skipped=0),
            "",
            {"ping": ["SUCCESS", "SKIPPED"]},
            ["1 checks were skipped, not 0", "the client did not come to its end in ping"],
        ),
    ],
)
def test_why_a_leg_has_not_passed_is_said(
    leg: Leg, output: str, scenarios: dict[str, list[str]], complaints: list[str], tmp_path: Path
) -> None:
    for name, statuses in scenarios.items():
        written = tmp_path / f"server-{name}-2026-01-02T03-04-05-678Z"
        written.mkdir()
        checks = [{"id": f"check-{number}", "status": status} for number, status in enumerate(statuses)]
        (written / "checks.json").write_text(json.dumps(checks))
        for said in ("stdout.txt", "stderr.txt"):
            (written / said).write_text("half of it")
    assert read_outcome(leg, tmp_path, exit_code=0, output=output, seconds=1.5).complaints == complaints


def test_nothing_is_expected_to_fail() -> None:
    assert not [leg.name for leg in LEGS if "--expected-failures" in leg.arguments]
