"""Fixtures of the tests of what all SQL servers have in common. Most run on SQLite, which needs no server;
`made_up.py` shows that an engine needs only what `database.py` requires."""

from tests.servers.sqlite.conftest import file

__all__ = ["file"]
