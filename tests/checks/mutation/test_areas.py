"""The areas name what is there."""

import pytest

from tests.checks.mutation.areas import AREAS
from tests.checks.mutation.run import ROOT


@pytest.mark.parametrize("name", AREAS)
def test_an_area_names_existing_files_and_tests(name: str) -> None:
    for pattern in (*AREAS[name].files, *AREAS[name].tests):
        assert list(ROOT.glob(pattern)), pattern
