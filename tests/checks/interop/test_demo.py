"""What `make demo` does with the official client."""

import pytest

from . import demo


def test_the_official_client_edits_a_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    _, *told = capsys.readouterr().out.splitlines()
    assert [line.endswith("all files still compile") for line in told] == 4 * [True]
