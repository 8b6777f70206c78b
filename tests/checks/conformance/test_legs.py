"""A leg that failed, or ran too little, is told from one that passed."""

import json
from pathlib import Path

from tests.checks.conformance.legs import LEGS, Leg, read_outcome

WHY = [
    (Leg("tried", (), 2), ["SUCCESS", "SKIPPED"], []),
    (Leg("tried", (), 3), ["SUCCESS", "WARNING"], ["2 scenarios were run, not 3", "1 warnings"]),
    (Leg("tried", (), 1, scored=0), ["FAILURE"], ["['s0'] did not pass", "None of 0 scored scenarios are fine"]),
    (Leg("on", (), 2, way="chained", excluded={"s1": "it is no message"}), ["SUCCESS", "FAILURE"], []),
    (Leg("on", (), 1, way="chained"), ["FAILURE"], ["['s0'] did not pass, where [] can't"]),
    (Leg("tried", (), 1, "client"), ["SUCCESS"], ["the client did not come to its end in s0"]),
]


def test_a_failed_leg_names_its_reason(tmp_path: Path) -> None:
    for number, (leg, statuses, complaints) in enumerate(WHY):
        for scenario, status in enumerate(statuses):
            written = tmp_path / str(number) / f"server-s{scenario}-2026-01-02T03-04-05-678Z"
            written.mkdir(parents=True)
            (written / "checks.json").write_text(json.dumps([{"id": "check", "status": status}]))
            for said in ("stdout.txt", "stderr.txt"):
                (written / said).write_text("half of it")
        found = read_outcome(leg, tmp_path / str(number), exit_code=0, output="", seconds=1.5)
        assert found.complaints == complaints


def test_nothing_is_expected_to_fail() -> None:
    assert not [leg.name for leg in LEGS if "--expected-failures" in leg.arguments]
