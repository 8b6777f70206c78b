"""The list of cases and the names of tests agree."""

import re
from pathlib import Path

TESTS = Path(__file__).parent


def test_each_case_has_its_tests_and_each_number_its_case() -> None:
    listed = set(re.findall(r"^\| ([A-Z]\d+) \|", (TESTS / "CASES.md").read_text(), re.MULTILINE))
    named = {
        number.upper()
        for file in TESTS.rglob("test_*.py")
        for number in re.findall(r"def test_([a-z]\d+)_", file.read_text())
    }
    assert named == listed
