"""How often `find` gives the sentence that answers, of a page's length a fifth and a tenth.

    apt-get download git-doc postgresql-doc-15 sqlite3-doc apache2-doc
    for package in *.deb; do dpkg-deb -x $package manuals; done
    python -m tests.checks.benchmarks.fetch_questions manuals/usr/share/doc

The 200 questions in `fetch_questions.tsv`, each with its page and a part of the sentence that answers, were written
before the code, of which every second one was not looked at until it was done.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from servers.fetch.errors import FetchError
from servers.fetch.pages.passages import find_passages
from servers.fetch.read.html.page import read_html
from servers.fetch.read.text import decode

QUESTIONS = Path(__file__).with_suffix(".tsv")
SHARES = (5, 10)


class Question(NamedTuple):
    """A question about a page of a manual, and a part of the sentence that answers it."""

    page: str
    words: str
    answer: str


def read_questions() -> list[Question]:
    """All questions, in the order in which they were written."""
    return [Question(*line.split("\t")) for line in QUESTIONS.read_text("utf-8").splitlines()]


def read_pages(manuals: Path, questions: Sequence[Question]) -> dict[str, str]:
    """The Markdown of each page that is asked about."""
    texts = {}
    for page in dict.fromkeys(question.page for question in questions):
        html, _ = decode((manuals / page).read_bytes(), None, "text/html")
        texts[page] = read_html(html, f"http://manuals.example/{page}", "markdown", None).text
    return texts


def is_answered(text: str, question: Question, share: int) -> bool:
    """Whether the passages that fit into that share of a text have the answer."""
    try:
        return question.answer in find_passages(text, question.words, len(text) // share).text
    except FetchError:
        return False


def main(manuals: Path) -> None:
    """Print how many questions of each half are answered."""
    questions = read_questions()
    texts = read_pages(manuals, questions)
    for name, half in (("looked at", questions[0::2]), ("held back", questions[1::2])):
        lost = [question for question in half if question.answer not in texts[question.page]]
        for share in SHARES:
            answered = sum(is_answered(texts[question.page], question, share) for question in half)
            print(f"{name}: {answered} of {len(half)} at 1/{share} of the page; not in its text: {len(lost)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
