"""The databases of other tests: the sample is whole and always the same, and the hostile ones can be made."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.servers.sqlite.malicious import HOSTILE, NO_DATABASE, Maker, nothing
from tests.servers.sqlite.samples import make_chinook


def test_the_sample_keeps_its_own_rules(tmp_path: Path) -> None:
    with closing(sqlite3.connect(make_chinook(tmp_path / "a.db"))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert not connection.execute("PRAGMA foreign_key_check").fetchall()
        total = "SELECT sum(UnitPrice * Quantity) FROM InvoiceLine AS l WHERE l.InvoiceId = i.InvoiceId"
        wrong = f"SELECT count(*) FROM Invoice AS i WHERE abs(Total - ({total})) > 0.001"
        assert connection.execute(wrong).fetchone() == (0,)


def test_the_sample_is_always_the_same(tmp_path: Path) -> None:
    dumps = []
    for name in ("a.db", "b.db"):
        with closing(sqlite3.connect(make_chinook(tmp_path / name))) as connection:
            dumps.append(list(connection.iterdump()))
    assert dumps[0] == dumps[1]


@pytest.mark.parametrize("make", [*HOSTILE, *NO_DATABASE, nothing], ids=lambda make: make.__name__)
def test_a_hostile_file_is_made(make: Maker, tmp_path: Path) -> None:
    assert make(tmp_path) == tmp_path / "data.db"
    assert (tmp_path / "data.db").exists()
