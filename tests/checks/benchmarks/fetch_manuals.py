"""How much of manuals is kept: signatures, headings and cells of pages that generators have written.

python -m tests.checks.benchmarks.fetch_manuals [FOLDER]

The manuals are Debian packages, which `apt-get download` brings and `dpkg` unpacks into FOLDER; nothing of them is in
this project. What counts is in the element that each generator puts the text in, and not in its lines of navigation.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from lxml.html import HtmlElement, HTMLParser, document_fromstring

from servers.fetch.read.html.page import read_html
from servers.fetch.read.text import decode
from tests.npm import Unavailable

MOST_PAGES = 60
"""Of each manual: each second page is read of a larger one, or each third."""
SHORTEST = 200
"""Characters of a page that has more than a link to another."""


class Manual(NamedTuple):
    """A manual: the package that has it, where its pages are, and the elements of its text."""

    package: str
    generator: str
    pages: str
    text: str
    """An XPath expression."""
    navigation: str = ""
    """The same of what is no text within it."""


_SPHINX = "//div[@class='body']"
MANUALS = (
    Manual("postgresql-doc-15", "DocBook", "usr/share/doc/postgresql-doc-15/html", "//body",
           "//div[@class='navheader' or @class='navfooter' or @class='toc']"),
    Manual("git-doc", "AsciiDoc", "usr/share/doc/git-doc", "//div[@id='content']"),
    Manual("bash-doc", "Texinfo", "usr/share/doc/bash", "//body",
           "//div[starts-with(@class, 'header') or contains(@class, 'contents')] | //table[@class='menu']"),
    Manual("r-doc-html", "Texinfo", "usr/share/R/doc/manual", "//body",
           "//div[starts-with(@class, 'header') or contains(@class, 'contents')] | //table[@class='menu']"),
    Manual("python-django-doc", "Sphinx, Django's theme", "usr/share/doc/python-django-doc/html",
           "//div[@id='yui-main']", "//*[@class='nav']"),
    Manual("sphinx-doc", "Sphinx", "usr/share/doc/sphinx-doc/html", _SPHINX),
    Manual("cmake-doc", "Sphinx, classic theme", "usr/share/doc/cmake-data/html", _SPHINX),
    Manual("libstdc++-12-doc", "Doxygen", "usr/share/doc/gcc-12-base/libstdc++/user", "//div[@class='contents']",
           "//*[@class='memberdecls' or @class='dynheader']"),
)  # fmt: skip


class Kept(NamedTuple):
    """How many parts a manual has, how many of them are kept, and those that are not."""

    pages: int
    parts: int
    lost: list[str]


def unpack(manual: Manual, folder: Path) -> Path:
    """The folder of a manual's pages. Raises Unavailable."""
    place = folder / manual.package
    if not place.exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            raise Unavailable("manuals are Debian packages, and there is no apt-get here")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["apt-get", "download", "-q", manual.package], cwd=folder, check=True, capture_output=True)
        except subprocess.CalledProcessError:
            raise Unavailable(f"apt-get can't download {manual.package}") from None
        [archive] = folder.glob(f"{manual.package}_*.deb")
        subprocess.run(["dpkg", "-x", archive, place], check=True)
    return place / manual.pages


class Page(NamedTuple):
    """A page of a manual, and the terms and signatures, headings and cells that are to be kept of it."""

    path: Path
    parts: list[str]


def pages_of(manual: Manual, folder: Path, most: int) -> Iterator[Page]:
    """Yield about so many pages of a manual, from all of it. Raises Unavailable."""
    every = sorted(unpack(manual, folder).rglob("*.html"))
    for path in islice(every, 0, None, max(1, len(every) // most)):
        body = path.read_bytes()
        parts = list(_parts(manual, body))
        if len(body) >= SHORTEST and parts:
            yield Page(path, parts)


def lost_of(page: Page, text: str) -> list[str]:
    """The parts of a page that are not in its text."""
    kept = _bare(text)
    return [part for part in page.parts if _bare(part) not in kept]


def measure(manual: Manual, folder: Path) -> Kept:
    """What is kept of a manual. Raises Unavailable."""
    pages = parts = 0
    lost: list[str] = []
    for page in pages_of(manual, folder, MOST_PAGES):
        text, _ = decode(page.path.read_bytes(), None, "text/html")
        written = read_html(text, f"https://example.com/{page.path.name}", "text", None).text
        pages += 1
        parts += len(page.parts)
        lost += [f"{page.path.name}: {part}" for part in lost_of(page, written)]
    return Kept(pages, parts, lost)


def _parts(manual: Manual, body: bytes) -> Iterator[str]:
    """The terms and signatures, headings and cells of a page."""
    root = document_fromstring(body, parser=HTMLParser(encoding="utf-8"))
    for element in root.xpath(manual.navigation) if manual.navigation else ():
        element.drop_tree()
    texts: list[HtmlElement] = root.xpath(manual.text)
    for text in texts:
        for element in text.iter("h1", "h2", "h3", "h4", "h5", "h6", "dt", "td", "th"):
            if (
                element.tag in ("td", "th")
                and next(element.iterdescendants("td", "dt", "pre", "li"), None) is not None
            ):
                continue
            if _bare(said := " ".join(element.text_content().split())):
                yield said


def _bare(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(filter(str.isalnum, text))


def main(folder: Path) -> None:
    """Prints a line for each manual."""
    for manual in MANUALS:
        try:
            kept = measure(manual, folder)
        except Unavailable as reason:
            print(f"{manual.package}: not measured: {reason}")
            continue
        share = 1 - len(kept.lost) / max(1, kept.parts)
        print(f"{manual.package} ({manual.generator}): {kept.pages} pages, {kept.parts} parts, {share:.2%} kept")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
