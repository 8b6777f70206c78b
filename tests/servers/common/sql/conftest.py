"""The tests of what all SQL servers have in common. Most run on SQLite, which needs no server of its own; that no
engine is needed but what `database.py` asks for is seen with one that is made up (`made_up.py`)."""

from tests.servers.sqlite.conftest import file

__all__ = ["file"]
