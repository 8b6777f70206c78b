"""The databases of the servers' own tests, for whole servers in hard times and under attack."""

from tests.servers.postgres.conftest import database, postgres
from tests.servers.sqlite.conftest import file

__all__ = ["database", "file", "postgres"]
