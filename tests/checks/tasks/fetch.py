"""Tasks on pages of a site on this machine; the peer is the official server."""

import json
import re
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.checks.tasks.session import Session
from tests.checks.tasks.task import Script, Task

WORDS = "The mill by the river grinds wheat all year, and the miller sells the flour in town. "
CHAPTERS = "".join(f"<h2>Chapter {n}</h2><p>{WORDS * 12}</p>" for n in range(1, 31))
PAGES = {
    "/article": ("text/html", f"<nav><a href=/a>Home</a></nav><main><h1>Mills</h1><p>{WORDS * 9}</p></main>"),
    "/index": (
        "text/html",
        f"<main><h1>News</h1><p>{WORDS * 3} <a href='/story'>The story of the dam</a></p><p>{WORDS * 3}</p></main>",
    ),
    "/story": ("text/html", f"<main><h1>The dam</h1><p>The dam broke in 1954. {WORDS * 4}</p></main>"),
    "/long": (
        "text/html",
        f"<main><h1>A history</h1>{CHAPTERS}<h2>Prices</h2>"
        f"<p>In 1911 a sack cost nine crowns. {WORDS * 5}</p></main>",
    ),
    "/data": ("application/json", json.dumps({"towns": [{"name": f"Town {n}", "mills": n} for n in range(9)]})),
    **{f"/part{n}": ("text/html", f"<main><h1>Part {n}</h1><p>{WORDS * 5}</p></main>") for n in range(4)},
}


class Pages(BaseHTTPRequestHandler):
    """The pages of the site."""

    def do_GET(self) -> None:
        """Answers with the page of that path."""
        kind, text = PAGES.get(self.path, ("text/plain", ""))
        self.send_response(200 if self.path in PAGES else 404)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def keep(folder: Path) -> None:
    """Make nothing: the site is the same for all tasks."""


def tasks(address: str) -> tuple[Task, ...]:
    """The tasks on the site at that address."""

    def fetch(path: str, **arguments: object) -> Script:
        return lambda session, _: session.call("fetch", url=address + path, **arguments)

    def follow(session: Session, _: Path) -> str:
        page = session.call("fetch", url=f"{address}/index")
        link = re.findall(r"\[The story of the dam\]\(([^)\s]+)", page)[0]
        return session.call("fetch", url=link if link.startswith("http") else address + link)

    def page_through(session: Session, _: Path) -> str:
        text = ""
        for start in range(0, 60_000, 5_000):
            text = session.call("fetch", url=f"{address}/long", start_index=start)
            if "nine crowns" in text:
                break
        return text

    def one_by_one(session: Session, _: Path) -> str:
        return "\n".join(session.call("fetch", url=f"{address}/part{n}") for n in range(4))

    parts = [f"{address}/part{n}" for n in range(4)]
    return (
        Task("read an article", keep, fetch("/article"), fetch("/article"), lambda _, text: "grinds wheat" in text),
        Task("follow a link to a story", keep, follow, follow, lambda _, text: "1954" in text),
        Task(
            "answer from a long page", keep, fetch("/long", find="what did a sack cost in 1911?"), page_through,
            lambda _, text: "nine crowns" in text,
        ),
        Task(
            "read one section", keep, fetch("/long", section="Prices"), page_through,
            lambda _, text: "nine crowns" in text,
        ),
        Task("read data", keep, fetch("/data"), fetch("/data"), lambda _, text: "Town 8" in text),
        Task(
            "read four pages", keep, lambda session, _: session.call("fetch_many", urls=parts), one_by_one,
            lambda _, text: all(f"Part {n}" in text for n in range(4)),
        ),
        Task(
            "see how a page is divided", keep, fetch("/long", format="metadata"),
            fetch("/long", max_length=100_000), lambda _, text: "Chapter 30" in text,
        ),
    )  # fmt: skip
