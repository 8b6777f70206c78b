"""The rows of what is kept of pages: word F1 on development pages of WCXB, and the parts of manuals.

Both servers are asked for each page; trafilatura, with its defaults, reads it in this process.
"""

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from trafilatura import extract

from tests.checks.benchmarks import targets
from tests.checks.benchmarks.fetch_articles import with_headline
from tests.checks.benchmarks.fetch_kinds import KINDS, LOST, read_samples, score
from tests.checks.benchmarks.fetch_manuals import MANUALS, lost_of, pages_of
from tests.checks.benchmarks.fetch_pages import KINDS_FOLDER, MANUALS_FOLDER, served
from tests.checks.benchmarks.fetch_peers import OFFICIAL, TRAFILATURA
from tests.checks.benchmarks.fetch_rows import read_pages
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.targets import Measure
from tests.npm import Unavailable

EACH = 5
"""Of so many development pages that were not learnt from one is read: all of them take the servers ten minutes."""
PAGES = 6
"""Pages of each manual."""

Figures = Iterator[tuple[Measure, float]]


def kind_rows(peer: Peer, folder: Path) -> Figures:
    """Yield how near `peer` comes to the content of seven kinds of pages. Raises Unavailable."""
    if not (folder / KINDS_FOLDER).exists():
        raise Unavailable("--kinds does not name the folder `dev` of WCXB")
    samples = [sample for sample in read_samples(folder / KINDS_FOLDER) if not sample.learn][::EACH]
    texts = _texts(peer, folder, [f"/kind/{sample.name}" for sample in samples], [one.html() for one in samples])
    scores = [score(text, sample.truth) for text, sample in zip(texts, samples, strict=True)]
    yield targets.KINDS_F1, 100 * statistics.fmean(one.f1 for one in scores)
    for kind, measure in zip(KINDS, targets.KIND_F1, strict=True):
        own = [one.f1 for one, sample in zip(scores, samples, strict=True) if sample.kind == kind]
        yield measure, 100 * statistics.fmean(own)
    yield targets.KINDS_LOST, 100 * sum(one.recall < LOST for one in scores) / len(scores)


def manual_rows(peer: Peer, folder: Path) -> Figures:
    """Yield the share of signatures, headings and cells of manuals that `peer` keeps. Raises Unavailable."""
    place = folder / MANUALS_FOLDER
    if not place.exists():
        raise Unavailable("--manuals names no folder for the manuals")
    pages = [page for manual in MANUALS for page in pages_of(manual, place, PAGES)]
    targets_of = [f"/manual/{page.path.relative_to(place)}" for page in pages]
    texts = _texts(peer, folder, targets_of, [page.path.read_bytes() for page in pages])
    lost = sum(len(lost_of(page, text)) for page, text in zip(pages, texts, strict=True))
    yield targets.MANUALS_KEPT, 100 * (1 - lost / sum(len(page.parts) for page in pages))


def _texts(peer: Peer, folder: Path, pages: Sequence[str], bodies: Sequence[bytes]) -> list[str]:
    """The text of each page of the site. Raises Unavailable."""
    if peer is TRAFILATURA:
        return [extract(body) or "" for body in bodies]
    with served(folder) as sites:
        urls = map(sites.url, pages)
        if peer is OFFICIAL:  # it has no other form than Markdown
            return list(map(with_headline, read_pages(peer.stdio(folder), sites, urls)[0]))
        return read_pages(peer.stdio(folder), sites, urls, format="text")[0]
