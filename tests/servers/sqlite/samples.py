"""A sample database with the schema of Chinook, a public example of a digital music shop, and invented rows.

Tables, keys and indexes are those of Chinook without employees; a view, a trigger and a check are added. The rows are
the same in every run.

python -m tests.servers.sqlite.samples FILE
"""

import random
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE Artist (ArtistId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE Album (
  AlbumId INTEGER PRIMARY KEY,
  Title NVARCHAR(160) NOT NULL,
  ArtistId INTEGER NOT NULL REFERENCES Artist (ArtistId)
);
CREATE TABLE Genre (GenreId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE Track (
  TrackId INTEGER PRIMARY KEY,
  Name NVARCHAR(200) NOT NULL,
  AlbumId INTEGER REFERENCES Album (AlbumId),
  GenreId INTEGER REFERENCES Genre (GenreId),
  Composer NVARCHAR(220),
  Milliseconds INTEGER NOT NULL,
  Bytes INTEGER,
  UnitPrice NUMERIC(10, 2) NOT NULL CHECK (UnitPrice >= 0)
);
CREATE TABLE Playlist (PlaylistId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE PlaylistTrack (
  PlaylistId INTEGER NOT NULL REFERENCES Playlist (PlaylistId),
  TrackId INTEGER NOT NULL REFERENCES Track (TrackId),
  PRIMARY KEY (PlaylistId, TrackId)
);
CREATE TABLE Customer (
  CustomerId INTEGER PRIMARY KEY,
  FirstName NVARCHAR(40) NOT NULL,
  LastName NVARCHAR(20) NOT NULL,
  Company NVARCHAR(80),
  Address NVARCHAR(70),
  City NVARCHAR(40),
  State NVARCHAR(40),
  Country NVARCHAR(40),
  PostalCode NVARCHAR(10),
  Phone NVARCHAR(24),
  Fax NVARCHAR(24),
  Email NVARCHAR(60) NOT NULL
);
CREATE TABLE Invoice (
  InvoiceId INTEGER PRIMARY KEY,
  CustomerId INTEGER NOT NULL REFERENCES Customer (CustomerId),
  InvoiceDate DATETIME NOT NULL,
  BillingAddress NVARCHAR(70),
  BillingCity NVARCHAR(40),
  BillingState NVARCHAR(40),
  BillingCountry NVARCHAR(40),
  BillingPostalCode NVARCHAR(10),
  Total NUMERIC(10, 2) NOT NULL
);
CREATE TABLE InvoiceLine (
  InvoiceLineId INTEGER PRIMARY KEY,
  InvoiceId INTEGER NOT NULL REFERENCES Invoice (InvoiceId) ON DELETE CASCADE,
  TrackId INTEGER NOT NULL REFERENCES Track (TrackId),
  UnitPrice NUMERIC(10, 2) NOT NULL,
  Quantity INTEGER NOT NULL
);
CREATE INDEX IFK_AlbumArtistId ON Album (ArtistId);
CREATE INDEX IFK_InvoiceCustomerId ON Invoice (CustomerId);
CREATE INDEX IFK_InvoiceLineInvoiceId ON InvoiceLine (InvoiceId);
CREATE INDEX IFK_InvoiceLineTrackId ON InvoiceLine (TrackId);
CREATE INDEX IFK_PlaylistTrackTrackId ON PlaylistTrack (TrackId);
CREATE INDEX IFK_TrackAlbumId ON Track (AlbumId);
CREATE INDEX IFK_TrackGenreId ON Track (GenreId);
CREATE VIEW SalesByCountry AS
  SELECT BillingCountry AS Country, count(*) AS Invoices, round(sum(Total), 2) AS Total
  FROM Invoice GROUP BY BillingCountry;
CREATE TRIGGER InvoiceTotal AFTER INSERT ON InvoiceLine BEGIN
  UPDATE Invoice SET Total = round(Total + new.UnitPrice * new.Quantity, 2) WHERE InvoiceId = new.InvoiceId;
END;
"""

ARTISTS, ALBUMS, TRACKS, PLAYLISTS, CUSTOMERS, INVOICES = 50, 120, 1_000, 8, 59, 400
GENRES = ("Rock", "Jazz", "Metal", "Blues", "Latin", "Classical", "Reggae", "Pop")
PLACES = (("Berlin", "Germany"), ("Prague", "Czech Republic"), ("Oslo", "Norway"), ("São Paulo", "Brazil"))
FIRST = ("Ana", "Björn", "Chloë", "Dmitri", "Eve", "Frank", "Grace", "Hélène")
LAST = ("Almeida", "Brown", "Čech", "Dubois", "Edwards", "Fernández", "Gruber", "Hansen")
WORDS = ("Blue", "Night", "River", "Stone", "Glass", "Morning", "Road", "Fire", "Winter", "Étude")

Row = tuple[Any, ...]


def make_chinook(file: Path, *, wal: bool = False) -> Path:
    """Makes the database, which must not exist yet."""
    with closing(sqlite3.connect(file)) as connection:
        if wal:
            connection.execute("PRAGMA journal_mode = wal")
        connection.executescript(SCHEMA)
        with connection:
            for table, rows in _tables(random.Random(1)):
                filled = list(rows)
                marks = ", ".join("?" * len(filled[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", filled)
    return file


def _tables(chance: random.Random) -> Iterator[tuple[str, Iterator[Row]]]:
    """Returns each table with its rows; referenced tables come first."""
    prices = [chance.choice((0.99, 1.99)) for _ in range(TRACKS)]
    yield "Artist", ((number, f"The {_words(chance)}") for number in _ids(ARTISTS))
    yield "Album", ((number, _words(chance), 1 + number % ARTISTS) for number in _ids(ALBUMS))
    yield "Genre", iter(enumerate(GENRES, 1))
    yield "Track", (_track(chance, number, prices[number - 1]) for number in _ids(TRACKS))
    yield "Playlist", ((number, f"List {number}") for number in _ids(PLAYLISTS))
    yield "PlaylistTrack", ((1 + number % PLAYLISTS, number) for number in _ids(TRACKS))
    yield "Customer", (_customer(chance, number) for number in _ids(CUSTOMERS))
    yield "Invoice", (_invoice(chance, number) for number in _ids(INVOICES))
    yield "InvoiceLine", _lines(chance, prices)


def _ids(count: int) -> range:
    return range(1, count + 1)


def _words(chance: random.Random) -> str:
    return " ".join(chance.sample(WORDS, 2))


def _track(chance: random.Random, number: int, price: float) -> Row:
    composer = chance.choice((None, f"{chance.choice(FIRST)} {chance.choice(LAST)}"))
    length = chance.randrange(60_000, 600_000)
    genre = 1 + number % len(GENRES)
    return number, f"{_words(chance)} {number}", 1 + number % ALBUMS, genre, composer, length, length * 16, price


def _customer(chance: random.Random, number: int) -> Row:
    company = chance.choice((None, f"{_words(chance)} Ltd."))
    name = (FIRST[number % len(FIRST)], LAST[chance.randrange(len(LAST))])
    return number, *name, company, *_address(chance, number), f"person-{number}@example.com"


def _address(chance: random.Random, number: int) -> Row:
    city, country = PLACES[number % len(PLACES)]
    street = f"{chance.choice(WORDS)} Street {number}"
    return street, city, None, country, f"{10_000 + number}", f"+00 555 {number:04}", None


def _invoice(chance: random.Random, number: int) -> Row:
    """Makes an invoice without a total, which the trigger computes from its lines."""
    customer = 1 + number % CUSTOMERS
    street, city, state, country, code, *_ = _address(chance, customer)
    day = date(2021, 1, 1) + timedelta(4 * number)
    return number, customer, f"{day} 00:00:00", street, city, state, country, code, 0


def _lines(chance: random.Random, prices: list[float]) -> Iterator[Row]:
    line = 0
    for invoice in _ids(INVOICES):
        for track in chance.sample(range(TRACKS), chance.randint(1, 9)):
            line += 1
            yield line, invoice, track + 1, prices[track], 1


if __name__ == "__main__":
    make_chinook(Path(sys.argv[1]))
