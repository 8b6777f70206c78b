"""One PostgreSQL for all tests of a process, and for each test that asks for it a database of its own."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.postgres_server import PostgresServer, short_folder
from tests.servers.postgres.databases import SAMPLE, Database, copy_sample, make_sample

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running server, with the sample as a database of its own that nobody changes."""
    with short_folder() as folder:
        server = PostgresServer(folder)
        server.start()
        make_sample(server)
        yield server
        server.stop()


@pytest.fixture(scope="session")
def sample(postgres: PostgresServer) -> Database:
    """A copy of the sample that nobody changes, for all tests that only read."""
    return copy_sample(postgres, "shared_sample")


@pytest.fixture(scope="module")
def workshop(postgres: PostgresServer) -> Database:
    """A copy for the tests of one file, each of which changes something of its own in it."""
    return copy_sample(postgres, f"{SAMPLE}_{next(_NUMBERS)}")


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    """A fresh copy of the sample."""
    name = f"{SAMPLE}_{next(_NUMBERS)}"
    yield copy_sample(postgres, name)
    if postgres.is_running:
        postgres.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
