"""The authorization server of this run, the certificates that make it https, and the matrix printed at its end."""

from collections.abc import Callable, Iterator
from dataclasses import astuple
from typing import Any

import pytest

from tests.checks.interop.authorization import certificates
from tests.checks.interop.authorization.authority import Authority
from tests.checks.interop.authorization.certificates import Certificates
from tests.checks.interop.authorization.matrix import Column, Found, table
from tests.records import recorded

CELLS = "authorization"


@pytest.fixture(scope="package")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """The certificates of this run."""
    return certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="package")
def authority(tmp_path_factory: pytest.TempPathFactory, trusted: Certificates) -> Iterator[Authority]:
    """An authorization server; the tests are skipped where it can't be installed, and fail under CI=true."""
    with Authority(tmp_path_factory.mktemp("authority"), trusted) as running:
        yield running


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[Column, Found], None]:
    """Takes what became of the rows of a column."""
    return lambda column, found: request.node.user_properties.append((CELLS, (astuple(column), dict(found))))


def print_tables(terminalreporter: Any) -> None:
    """Prints the matrix."""
    found = {Column(*column): outcomes for column, outcomes in recorded(terminalreporter, CELLS)}
    terminalreporter.section("logging in")
    for line in table(found):
        terminalreporter.write_line(line)
