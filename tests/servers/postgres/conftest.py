"""One PostgreSQL for all tests of a process, and separate databases for tests that write."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.postgres_server import PostgresServer, short_folder
from tests.servers.postgres.databases import SAMPLE, Database, copy_sample, make_sample

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running server with the sample database, which no test changes."""
    with short_folder() as folder:
        server = PostgresServer(folder)
        server.start()
        make_sample(server)
        yield server
        server.stop()


@pytest.fixture(scope="session")
def sample(postgres: PostgresServer) -> Database:
    """A copy of the sample for all tests that only read."""
    return copy_sample(postgres, "shared_sample")


@pytest.fixture(scope="module")
def workshop(postgres: PostgresServer) -> Database:
    """A copy for the tests of one file, each of which changes a different part of it."""
    return copy_sample(postgres, f"{SAMPLE}_{next(_NUMBERS)}")


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    """A new copy of the sample for one test."""
    name = f"{SAMPLE}_{next(_NUMBERS)}"
    yield copy_sample(postgres, name)
    if postgres.is_running:
        postgres.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
