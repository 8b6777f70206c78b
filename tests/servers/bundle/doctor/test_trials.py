"""Findings about a started server: no secrets in them, whatever its output."""

from servers.bundle.doctor.trials import MODES, Attempt, Outcome, TriedServer, judge, mask, split_secrets
from tests.servers.bundle.doctor.machines import CATALOG

TOKEN = "do-not-show-this-7c1f"
ENTRY = CATALOG.entry("fetch")
INFO = {"name": ENTRY.name, "version": ENTRY.version}
WELL = Attempt(MODES[0], Outcome.ANSWERED, info=INFO)


SAYING = [
    ([Attempt(MODES[0], Outcome.REFUSED, f"bad token {TOKEN}")], "bad token ***"),
    ([Attempt(MODES[0], Outcome.REFUSED, "refused", last_line=f"bad token {TOKEN}")], "bad token ***"),
    ([Attempt(MODES[0], Outcome.ENDED, exit_code=1, last_line=f"bad token {TOKEN}")], "bad token ***"),
    ([Attempt(MODES[0], Outcome.SILENT, "nothing", last_line=f"bad token {TOKEN}")], "bad token ***"),
    ([WELL, Attempt(MODES[1], Outcome.REFUSED, f"bad token {TOKEN}")], "bad token ***"),
    ([WELL._replace(info={**INFO, "name": f"for {TOKEN}"})], "it calls itself 'for ***'"),
    ([WELL._replace(info={**INFO, "version": f"1 for {TOKEN}"})], "it is version 1 for ***"),
]


def test_findings_of_a_trial_have_no_secrets() -> None:
    for trials, text in SAYING:
        findings = list(judge(TriedServer("here", ENTRY, "another", "correct it", [TOKEN]), trials))
        assert TOKEN not in repr(findings)
        assert any(text in finding.what for finding in findings)


def test_secrets_and_their_parts_are_masked() -> None:
    """Covers secrets that contain each other, and parts of a secret; texts too short for a secret stay."""
    assert mask("x: Bearer secret-one", ["secret", "secret-one", "Bearer secret-one"]) == "x: ***"
    assert mask("no user of two/three", split_secrets(["name=user:two/three@host"])) == "no *** of ***"
    assert mask("yes or true", ["yes", "true"]) == "yes or ***"
