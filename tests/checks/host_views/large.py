"""Results of any size, of each tool that can have large ones, and what is missing in the pages of one."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.web_site import Reply, answered

_NAME = 200
"""Characters of the name of a file, or of a row."""
_TABLE = 1_000
"""Characters of the name of a table: SQLite itself takes minutes for a schema of very many."""
_CUT = re.compile(r"\n\[truncated: [^\n]+\]$")


class Result(NamedTuple):
    """A call whose result is large."""

    server: str
    operands: tuple[str, ...]
    tool: str
    arguments: dict[str, Any]
    missing: Callable[[list[str]], str]
    """Says what the pages lack; "" if they are the whole."""
    is_paged: bool = True
    """False if it is cut with a note, and has no cursor of its own."""


@contextmanager
def results(folder: Path, size: int) -> Iterator[list[Result]]:
    """Give results of at least `size` bytes."""
    text = "".join(f"{n:06} {n * 7919 % 100_003:06}\n" for n in range(size // 14 + 1))
    page = Reply(text.encode(), "text/plain; charset=utf-8")
    with answered(lambda *_: page) as address:
        pages = Result("fetch", (), "fetch", {"url": f"{address}/", "max_length": 900_000}, _same(text, _of_site))
        yield [*_of_files(folder / "files", text), *_of_tables(folder / "shop.db", size), pages]


def _of_files(folder: Path, text: str) -> list[Result]:
    folder.mkdir()
    (folder / "many").mkdir()
    names = [f"report-{n:06}-".ljust(_NAME, "x") for n in range(len(text) // _NAME + 1)]
    for name in names:
        (folder / "many" / name).write_text("needle")
    (folder / "numbers.txt").write_text(text)
    parts = [text[at : at + len(text) // 10] for at in range(0, len(text) // 10 * 10, len(text) // 10)]
    for number, part in enumerate(parts):
        (folder / f"part{number}.txt").write_text(part)
    paths = [str(folder / f"part{number}.txt") for number in range(10)]
    many = {"path": str(folder / "many")}

    def result(tool: str, arguments: dict[str, Any], missing: Callable[[list[str]], str]) -> Result:
        return Result("filesystem", (str(folder),), tool, arguments, missing)

    def entries(pages: list[str]) -> str:
        lines = re.findall(r"^(?:\[FILE\] )?(report-\d{6}-x+)", "\n".join(pages), re.MULTILINE)
        return "" if lines == names else f"{len(set(names) - set(lines))} of {len(names)} entries"

    def said(pages: list[str]) -> str:
        """Of a result without cursors, a cut has to be said."""
        shown = pages[-1].count("report-")
        return (
            ""
            if shown == len(names) or re.search(r"\[truncated: [\d,]+ entries shown", pages[-1])
            else "no word of a cut"
        )

    def files(pages: list[str]) -> str:
        whole = all(part in pages[0] for part in parts)
        return "" if whole or "[truncated: " in pages[0][-2_000:] else "no word of a cut"

    return [
        result("list_directory", many, entries),
        result("list_directory_with_sizes", many, entries),
        result("search_files", {**many, "pattern": "report-*"}, entries),
        result("search_content", {**many, "pattern": "needle"}, entries),
        result("directory_tree", many, said)._replace(is_paged=False),
        result("read_multiple_files", {"paths": paths}, files)._replace(is_paged=False),
        result("read_text_file", {"path": str(folder / "numbers.txt")}, _same(text, lambda page: _CUT.sub("", page))),
    ]


def _of_tables(path: Path, size: int) -> list[Result]:
    rows = [(n, f"buys {n * 7919 % 100_003} pounds of coffee".ljust(_NAME, ".")) for n in range(size // _NAME + 1)]
    tables = [f"orders_{n:06}_".ljust(_TABLE, "x") for n in range(size // _TABLE + 1)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, note TEXT)")
        connection.executemany("INSERT INTO customers VALUES (?, ?)", rows)
        # CREATE reads the whole schema each time.
        connection.execute("PRAGMA writable_schema = ON")
        schema = [(table, table, f"CREATE VIEW {table} AS SELECT 1") for table in tables]
        connection.executemany("INSERT INTO sqlite_schema VALUES ('view', ?, ?, 0, ?)", schema)

    def values(pages: list[str]) -> str:
        shown = [tuple(json.loads(row)) for page in pages for row in re.findall(r'\[\d+,"[^"]+"\]', page)]
        return "" if shown == rows else f"{len(set(rows) - set(shown))} of {len(rows)} rows"

    def names(pages: list[str]) -> str:
        shown = re.findall(r"orders_\d{6}_x+", "".join(pages))
        return "" if list(dict.fromkeys(shown)) == tables else f"{len(set(tables) - set(shown))} tables"

    query = {"query": "SELECT id, note FROM customers", "max_rows": 1_000_000}
    return [
        Result("sqlite", (str(path),), "read_query", query, values),
        Result("sqlite", (str(path),), "list_tables", {}, names),
    ]


def _of_site(page: str) -> str:
    inner = re.search(r"<(page-\w{8})>[^\n]*\n(.*)\n</\1>", page, re.DOTALL)
    return inner[2] if inner else ""


def _same(text: str, content: Callable[[str], str]) -> Callable[[list[str]], str]:
    """Return what says where the contents of pages, joined, differ from a text."""

    def missing(pages: list[str]) -> str:
        joined = "".join(map(content, pages))
        same = next(
            (at for at, pair in enumerate(zip(joined, text, strict=False)) if pair[0] != pair[1]), len(joined)
        )
        return "" if joined == text else f"differs at {same:,} of {len(text):,} characters"

    return missing
