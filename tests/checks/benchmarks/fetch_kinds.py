"""The development pages of WCXB (github.com/Murrough-Foley/web-content-extraction-benchmark, CC-BY-4.0): seven kinds
of pages with their main content as text, and its measure.

python -m tests.checks.benchmarks.fetch_kinds DEV

prints word F1 by kind for both halves, ours and that of trafilatura with its defaults. DEV is the folder `dev`.
Nothing of it is in this project, and its `test` folder is not opened. Half of the pages are learnt from; the other
half is kept to see what was learnt. Which is which depends on the hash of a page's name, within each kind.
"""

import gzip
import json
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from trafilatura import extract

from servers.fetch.errors import FetchError
from servers.fetch.read.html.page import read_html_page
from servers.fetch.read.page import Kind, Source

KINDS = ("article", "documentation", "service", "forum", "collection", "listing", "product")
LOST = 0.2
"""The recall of a page that is as good as lost."""
_WORD = re.compile(r"\w+")


class Sample(NamedTuple):
    """One page, and what is known of it."""

    name: str
    kind: str
    url: str
    truth: str
    """Its main content."""
    learn: bool
    """Whether it is in the half that is learnt from."""
    body: Path

    def html(self) -> bytes:
        """The page as the site sent it."""
        return gzip.decompress(self.body.read_bytes())


def read_samples(folder: Path) -> list[Sample]:
    """All pages of the folder `dev`, by kind, then by the hash of their names."""
    by_kind: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for path in (folder / "ground-truth").glob("*.json"):
        said = json.loads(path.read_text())
        kind = said["_internal"]["page_type"]["primary"].replace("category", "collection")
        truth = said["ground_truth"].get("main_content") or ""
        by_kind[kind].append((path.stem, said.get("url") or "https://example.com/", truth))
    return [
        Sample(name, kind, url, truth, number % 2 == 0, folder / "html" / f"{name}.html.gz")
        for kind, pages in sorted(by_kind.items())
        for number, (name, url, truth) in enumerate(sorted(pages, key=lambda page: sha256(page[0].encode()).digest()))
    ]


def words_of(text: str) -> list[str]:
    """What is compared of a text."""
    return _WORD.findall(text.lower())


class Score(NamedTuple):
    """How near a text comes to the truth, each from 0 to 1."""

    precision: float
    recall: float
    f1: float


def score(text: str, truth: str) -> Score:
    """By the words that both have, however they are ordered, as that benchmark has it."""
    found, wanted = Counter(words_of(text)), Counter(words_of(truth))
    if not found or not wanted:
        return Score(*[float(not found and not wanted)] * 3)
    right = (found & wanted).total()
    precision, recall = right / found.total(), right / wanted.total()
    return Score(precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0)


def ours(sample: Sample) -> str:
    """The text of a page as the server gives it."""
    kind = Kind("html", "text/html")
    try:
        return read_html_page(Source(kind, None, sample.url, "text", None, None, 60, sample.html())).text
    except FetchError:
        return ""


def theirs(sample: Sample) -> str:
    """The text of a page by trafilatura with its defaults."""
    return extract(sample.html()) or ""


def main(folder: Path) -> None:
    """Print a line for each reader and half."""
    samples = read_samples(folder)
    for name, read in (("ours", ours), ("trafilatura", theirs)):
        for learn in (True, False):
            half = [sample for sample in samples if sample.learn == learn]
            print(name, "learnt from" if learn else "kept", _line(half, read))


def _line(samples: Sequence[Sample], read: Callable[[Sample], str]) -> str:
    scores = [score(read(sample), sample.truth) for sample in samples]
    by_kind = defaultdict(list)
    for one, sample in zip(scores, samples, strict=True):
        by_kind[sample.kind].append(one.f1)
    kinds = ", ".join(f"{kind} {statistics.fmean(by_kind[kind]):.3f}" for kind in KINDS)
    lost = sum(one.recall < LOST for one in scores)
    return f"{statistics.fmean(one.f1 for one in scores):.4f}; {kinds}; {lost} lost of {len(samples)}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
