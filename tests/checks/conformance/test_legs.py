"""What the suite writes is read as what it means."""

import json
from pathlib import Path

import pytest

from tests.checks.conformance.client import DONE
from tests.checks.conformance.legs import LEGS, Leg, Outcome, read_outcome, row, table

LEG = Leg("tried", (), scenarios=2)


def outcome(folder: Path, leg: Leg = LEG, output: str = "", **scenarios: list[str]) -> Outcome:
    for name, statuses in scenarios.items():
        written = folder / f"server-{name}-2026-01-02T03-04-05-678Z"
        written.mkdir()
        checks = [{"id": f"check-{number}", "status": status} for number, status in enumerate(statuses)]
        (written / "checks.json").write_text(json.dumps(checks))
    return read_outcome(leg, folder, exit_code=0, output=output, seconds=1.5)


def test_a_leg_without_faults_has_passed(tmp_path: Path) -> None:
    found = outcome(tmp_path, ping=["SUCCESS", "INFO"], skills=["SKIPPED"])
    assert (found.complaints, found.failing, found.untested) == ([], [], ["skills"])


def test_a_leg_that_ran_too_little_has_not_passed(tmp_path: Path) -> None:
    assert outcome(tmp_path, ping=["SUCCESS"]).complaints == ["1 scenarios were run, not 2"]


def test_a_warning_is_a_complaint(tmp_path: Path) -> None:
    found = outcome(tmp_path, ping=["SUCCESS"], caching=["WARNING"])
    assert found.complaints == ["1 warnings"]
    assert found.faults == ["WARNING caching:check-0: "]


def test_only_scored_scenarios_must_be_fine(tmp_path: Path) -> None:
    leg = Leg("scored", (), scenarios=2, scored=1)
    output = "Not scored for 2026-07-28: 1 scenario(s) run, 1 failing. These do not affect conformance."
    found = outcome(tmp_path, leg, output, ping=["SUCCESS"], extra=["FAILURE"])
    assert (found.scored, found.complaints) == ((1, 1), [])


def test_a_scored_scenario_that_fails_is_a_complaint(tmp_path: Path) -> None:
    leg = Leg("scored", (), scenarios=2, scored=1)
    output = "Not scored for 2026-07-28: 1 scenario(s) run, 0 failing. These do not affect conformance."
    found = outcome(tmp_path, leg, output, ping=["FAILURE"], extra=["SUCCESS"])
    assert found.complaints == ["(0, 1) of 1 scored scenarios are fine"]


def test_the_table_has_a_line_for_each_leg(tmp_path: Path) -> None:
    lines = table([row(outcome(tmp_path, ping=["SUCCESS"], other=["FAILURE"]))]).splitlines()
    assert lines[1].split() == ["tried", "1/2", "1", "1", "0", "0", "1.5", "ok"]


CLIENT = Leg("tried", (), 1, "client", skipped=0)


def client_outcome(folder: Path, *statuses: str, said: str = DONE, leg: Leg = CLIENT) -> Outcome:
    written = folder / "auth" / "sign-in-2026-01-02T03-04-05-678Z"
    written.mkdir(parents=True)
    checks = [{"id": f"check-{number}", "status": status} for number, status in enumerate(statuses)]
    (written / "checks.json").write_text(json.dumps(checks))
    (written / "stdout.txt").write_text(said)
    (written / "stderr.txt").write_text("ValueError: no")
    return read_outcome(leg, folder, exit_code=0, output="", seconds=1.5)


def test_a_scenario_of_the_client_has_its_name(tmp_path: Path) -> None:
    found = client_outcome(tmp_path, "SUCCESS")
    assert (list(found.scenarios), found.complaints) == (["auth/sign-in"], [])


def test_a_client_that_fails_unnoticed_is_a_complaint(tmp_path: Path) -> None:
    found = client_outcome(tmp_path, "SUCCESS", said="half of it")
    assert found.complaints == ["the client did not come to its end in auth/sign-in"]
    assert found.faults == ["auth/sign-in: ValueError: no"]


def test_a_check_that_could_have_been_made_is_a_complaint(tmp_path: Path) -> None:
    assert client_outcome(tmp_path, "SUCCESS", "SKIPPED").complaints == ["1 checks were skipped, not 0"]


PASSED_ON = Leg("passed on", (), scenarios=2, way="chained", excluded={"closing": "it is no message"})


@pytest.mark.parametrize(("status", "code"), [("FAILURE", 1), ("INFO", 0)])
def test_what_can_not_pass_may_fail(tmp_path: Path, status: str, code: int) -> None:
    found = outcome(tmp_path, PASSED_ON, ping=["SUCCESS"], closing=[status])
    found.exit_code = code
    assert (found.complaints, found.faults) == ([], [])


def test_what_can_not_pass_and_does_is_a_complaint(tmp_path: Path) -> None:
    found = outcome(tmp_path, PASSED_ON, ping=["SUCCESS"], closing=["SUCCESS"])
    assert found.complaints == ["[] did not pass, where ['closing'] can't"]


def test_nothing_else_may_fail_beside_it(tmp_path: Path) -> None:
    found = outcome(tmp_path, PASSED_ON, ping=["FAILURE"], closing=["FAILURE"])
    found.exit_code = 1
    assert found.complaints == ["['closing', 'ping'] did not pass, where ['closing'] can't"]


def test_nothing_is_expected_to_fail() -> None:
    assert not [leg.name for leg in LEGS if "--expected-failures" in leg.arguments]


def test_the_legs_have_names_of_their_own() -> None:
    assert len({leg.name for leg in LEGS}) == len(LEGS)
