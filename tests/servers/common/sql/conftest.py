"""The tests of what all SQL servers have in common. They run on SQLite, which needs no server of its own: the tools
and their arguments are declared by each engine, so a made-up engine would have to declare them a third time."""

from tests.servers.sqlite.conftest import file

__all__ = ["file"]
