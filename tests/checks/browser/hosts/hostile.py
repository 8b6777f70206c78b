"""Hostile contents for the four servers: files and their names, tables, pages and prompts."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.checks.browser.watched import HOSTILE

__all__ = ["EVIL", "MARK", "lay_out_hostile"]

EVIL = [text.replace("\x00", "").replace("\ud7ff", "") for text in HOSTILE]
MARK = "<img src=x onerror=canary()>"
"""One of them, as it has to be readable."""
DEEP = 200
LONG_CELL = 1_000_000
MANY_ROWS = 100_000


def lay_out_hostile(folder: Path) -> None:
    """Makes `bakery`, `shop.db`, `site` and `prompts` in `folder`."""
    _lay_out_files(folder / "bakery")
    _lay_out_tables(folder / "shop.db")
    _lay_out_site(folder / "site")
    _lay_out_prompts(folder / "prompts")


def _lay_out_files(files: Path) -> None:
    files.mkdir()
    for number, text in enumerate(EVIL):
        name = text.replace("/", "\u2215").encode()[:200].decode(errors="ignore")
        (files / f"{number} {name}").write_text(f"{text}\n")
    (files / "evil.md").write_text(
        "\n\n".join(f"# {text}\n\n- {text}\n\n> {text}\n\n`{text}`\n\n{text}" for text in EVIL)
    )
    (files / "evil.csv").write_text(
        "name,text\n" + "".join(f"{number},{json.dumps(text)}\n" for number, text in enumerate(EVIL))
    )
    (files / "line.txt").write_text("x" * LONG_CELL)
    deepest = files / "deep"
    for _ in range(DEEP):
        deepest /= "d"
    deepest.mkdir(parents=True)
    (deepest / MARK).write_text("here\n")


def _lay_out_tables(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        names = ['"' + text.replace('"', '""') + '"' for text in EVIL]
        connection.execute(f"CREATE TABLE {names[0]} ({', '.join(names)})")
        places = ", ".join("?" * len(EVIL))
        connection.execute(f"INSERT INTO {names[0]} VALUES ({places})", EVIL)
        connection.execute(f"CREATE VIEW {names[3]} AS SELECT * FROM {names[0]}")
        connection.execute("CREATE TABLE long (cell TEXT)")
        connection.execute("INSERT INTO long VALUES (?)", [MARK + "y" * LONG_CELL])
        connection.execute("CREATE TABLE many (number INTEGER, text TEXT)")
        connection.executemany(
            "INSERT INTO many VALUES (?, ?)", ((row, EVIL[row % len(EVIL)]) for row in range(MANY_ROWS))
        )


def _lay_out_site(site: Path) -> None:
    site.mkdir()
    words = " ".join(["Some words that an article has, so that it is taken for one."] * 8)
    bodies = "".join(f"<h2>{_escaped(text)}</h2><p>{_escaped(text)} {words}</p>" for text in EVIL)
    links = "".join(
        f'<p>{words} <a href="{_escaped(text)}">{_escaped(text)}</a></p>' for text in (*EVIL, "javascript:canary()")
    )
    page = (
        f"<!doctype html><title>{_escaped(MARK)}</title><article><h1>{_escaped(MARK)}</h1>{bodies}{links}</article>"
    )
    (site / "index.html").write_text(page)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _lay_out_prompts(prompts: Path) -> None:
    prompts.mkdir()
    matter = {
        "name": "evil",
        "title": MARK,
        "description": " ".join(EVIL[:8]),
        "arguments": [{"name": "words", "description": EVIL[1], "required": True}],
    }
    text = "\n\n".join(EVIL).replace("{{", "{ {")
    (prompts / "evil.md").write_text(f"---\n{json.dumps(matter)}\n---\n{text}\n\n{{{{ words }}}}\n")
