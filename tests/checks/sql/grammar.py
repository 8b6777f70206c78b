"""SQL made by chance: ordinary and hostile, right and wrong, the same for the same seed.

The tables are those of the sample (`samples.py`), and those that the statements of `attacks.py` are about. What is
hostile would write, open files, take for ever or take all memory; what is mutated is mostly no SQL at all.
"""

import random
from collections.abc import Callable, Sequence

from tests.servers.sqlite.attacks import CHANGES, NEVER

TABLES = {
    "Artist": ("ArtistId", "Name"),
    "Album": ("AlbumId", "Title", "ArtistId"),
    "Track": ("TrackId", "Name", "AlbumId", "Milliseconds", "UnitPrice"),
    "Invoice": ("InvoiceId", "CustomerId", "InvoiceDate", "Total"),
    "SalesByCountry": ("Country", "Invoices", "Total"),
}
NUMBERS = ("0", "1", "-1", "0.5", "1e308", "-9e999", "9223372036854775807", "-9223372036854775808", "0x7fffffff")
TEXTS = ("''", "'a'", "'%'", "'O''Brien'", "'😀'", "char(0)", "x''", "x'ff00'", "NULL", "TRUE", "CAST(x'ff' AS TEXT)")
OPERATORS = ("+", "-", "*", "/", "%", "||", "=", "<>", "<", "IS", "AND", "OR", "LIKE", "GLOB", "->", "->>", "<<", "&")
FUNCTIONS = (
    *("abs", "hex", "length", "lower", "typeof", "quote"),
    *("unicode", "json", "json_type", "round", "date", "trim"),
)
AGGREGATES = ("count", "sum", "total", "avg", "min", "max", "group_concat", "json_group_array")
COUNTER = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c{})"

# What would never end, or fill the memory.
ENDLESS = (
    f"{COUNTER.format('')} SELECT count(*) FROM c",
    f"{COUNTER.format('')} SELECT n FROM c WHERE n < 0",
    f"{COUNTER.format('')} SELECT n FROM c ORDER BY n",
    f"{COUNTER.format('')} SELECT group_concat(n) FROM c",
    f"{COUNTER.format('')} SELECT json_group_array(hex(n)) FROM c",
    f"{COUNTER.format('')} SELECT count(DISTINCT hex(n)) FROM c",
    f"{COUNTER.format('')} SELECT sum(n) OVER (ORDER BY n) FROM c",
    "WITH RECURSIVE c(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM c) SELECT max(length(s)) FROM c",
    "SELECT count(*) FROM Track a, Track b, Track c, Track d",
    "SELECT a.Name FROM Track a, Track b, Track c ORDER BY a.Name || b.Name || c.Name LIMIT 10",
    "SELECT * FROM Track a LEFT JOIN Track b ON a.Name LIKE '%' || b.Name || '%' JOIN Track c ON b.Name > c.Name",
)
LARGE = (
    "SELECT zeroblob(1000000000)",
    "SELECT randomblob(1000000000)",
    "SELECT printf('%.*c', 1000000000, 'x')",
    "SELECT hex(zeroblob(15000000))",
    "SELECT replace(hex(zeroblob(1000000)), '0', 'ten bytes.')",
    "SELECT instr(hex(zeroblob(50000)), hex(zeroblob(20000)) || 1)",
    "SELECT hex(zeroblob(20000)) LIKE '%0%0%0%0%0%1'",
    "SELECT trim(hex(zeroblob(100000)), '01')",
    "SELECT json(replace(hex(zeroblob(5000)), '0', '['))",
    "SELECT quote(zeroblob(5000000)), zeroblob(9000000) || zeroblob(9000000)",
)
WRITES = CHANGES
ESCAPES = tuple(one.format(folder="/tmp/nowhere") for one in NEVER)
SPACES = (" ", "\n", "\t", "/* a */", "-- b\n", "\u00a0", "\ufeff", "\u2003", ";", "\0")


class Grammar:
    """Statements, one after the other."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def statement(self) -> str:
        """The next one."""
        kinds: dict[Callable[[], str], int] = {
            self.select: 50,
            self.mutated: 20,
            lambda: self._one(WRITES): 10,
            lambda: self._one(ESCAPES): 13,
            lambda: self._one(ENDLESS): 4,
            lambda: self._one(LARGE): 3,
        }
        made = self._chance.choices(list(kinds), list(kinds.values()))[0]()
        match self._chance.randrange(20):
            case 0:
                return f"{self._one(SPACES)}{made}"
            case 1:
                return f"{made}; {self._one(WRITES)}"
            case 2:
                return f"EXPLAIN {self._one(('', 'QUERY PLAN '))}{made}"
            case 3:
                return f"{made}{self._one(SPACES)}{self._one(SPACES)}"
        return made

    def select(self) -> str:
        """A query that is mostly a good one."""
        table = self._one(tuple(TABLES))
        columns = TABLES[table]
        made = f"SELECT {self._results(columns)} FROM {table}"
        if self._often(0.2):
            other = self._one(tuple(TABLES))
            made += (
                f" {self._one(('JOIN', 'LEFT JOIN', 'CROSS JOIN'))} {other} AS o ON o.{self._one(TABLES[other])} = 1"
            )
        if self._often(0.5):
            made += f" WHERE {self.expression(columns)}"
        if self._often(0.2):
            made += f" GROUP BY {self.expression(columns)} HAVING {self._one(AGGREGATES)}(1) > 0"
        if self._often(0.3):
            made += f" ORDER BY {self.expression(columns)} {self._one(('ASC', 'DESC NULLS LAST'))}"
        if self._often(0.5):
            made += f" LIMIT {self._one(NUMBERS)} OFFSET {self._one(('0', '5', '-1'))}"
        if self._often(0.1):
            made = f"WITH w AS ({made}) SELECT * FROM w"
        if self._often(0.1):
            made += f" {self._one(('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'))} {self.select()}"
        return made

    def _results(self, columns: Sequence[str]) -> str:
        if self._often(0.2):
            return "*"
        count = self._chance.randint(1, 4)
        made = [self.expression(columns) for _ in range(count)]
        if self._often(0.2):
            made.append(f"{self._one(AGGREGATES)}({self._one(columns)}) OVER (ORDER BY {self._one(columns)})")
        return ", ".join(f"{one} AS x" if self._often(0.2) else one for one in made)

    def expression(self, columns: Sequence[str], depth: int = 0) -> str:
        """A value, seldom a deep one."""
        if depth > 6 or self._often(0.4):
            return self._one((self._one(columns), self._one(NUMBERS), self._one(TEXTS)))
        inner = [self.expression(columns, depth + 1) for _ in range(2)]
        kinds = (
            f"({inner[0]} {self._one(OPERATORS)} {inner[1]})",
            f"{self._one(FUNCTIONS)}({inner[0]})",
            f"CASE WHEN {inner[0]} THEN {inner[1]} END",
            f"CAST({inner[0]} AS {self._one(('TEXT', 'INTEGER', 'BLOB', 'NUMERIC'))})",
            f"(SELECT {inner[0]} FROM {self._one(tuple(TABLES))} LIMIT 1)",
            f"{inner[0]} IN ({inner[1]}, 1)",
        )
        return self._one(kinds)

    def mutated(self) -> str:
        """A statement with some of its characters taken out, doubled, or put elsewhere."""
        text = list(self._one((self.select(), self._one(WRITES), self._one(ESCAPES))))
        for _ in range(self._chance.randint(1, 4)):
            place, other = (self._chance.randrange(len(text) + 1) for _ in range(2))
            match self._chance.randrange(3):
                case 0:
                    del text[place : place + self._chance.randint(1, 5)]
                case 1:
                    text[other:other] = text[place : place + 10]
                case _:
                    text.insert(place, self._one(("'", '"', "(", ")", ",", "?1", ":x", "\\", "\u202e", *SPACES)))
        return "".join(text)

    def _one(self, choices: Sequence[str]) -> str:
        return self._chance.choice(choices)

    def _often(self, probability: float) -> bool:
        return self._chance.random() < probability
