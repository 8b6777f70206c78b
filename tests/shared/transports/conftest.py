from collections.abc import Iterator

import pytest

from tests.shared.transports.http.http_wire import Site, served_meanwhile


@pytest.fixture(scope="module")
def standing() -> Iterator[Site]:
    """A server for all tests of a file that leave nothing behind in it: each takes a tenth of a second to end, for
    which uvicorn sleeps."""
    with served_meanwhile() as site:
        yield site
