"""The example messages of five documents about the protocol, and their summary at the end of a run: how many
are in a transcript as printed, and how many differ for a reason given by the table in
shared/protocol/wire/dialects/README.md.

`examples.json` beside the transcripts of a document lists them in their order. In a message, the text "..." stands
for what the document leaves out.
"""

import json
from collections import Counter
from functools import cache
from typing import Any

from tests.records import recorded
from tests.transcript_files import FOLDER

__all__ = ["DOCUMENTS", "EXAMPLE", "examples", "print_tables"]

DOCUMENTS = ("000", "001", "002", "003", "004")
EXAMPLE = "example of a document"
"""The user property of a test: the document, and whether its example is answered as it is printed."""


@cache
def examples(document: str) -> list[dict[str, Any]]:
    """Returns the examples of one document."""
    text = (FOLDER / f"document-{document}/examples.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text)
    return found


def print_tables(terminalreporter: Any) -> None:
    """Prints a line for each document, and one for all."""
    terminalreporter.section("example messages of the documents")
    answered = Counter(map(tuple, recorded(terminalreporter, EXAMPLE)))
    for name, documents in [*((one, (one,)) for one in DOCUMENTS), ("all", DOCUMENTS)]:
        listed = sum(len(examples(one)) for one in documents)
        as_printed, explained = (sum(answered[one, kind] for one in documents) for kind in (True, False))
        terminalreporter.write_line(
            f"{name}: {as_printed + explained} of {listed} example messages are answered, "
            f"{as_printed} as printed and {explained} as the table explains"
        )
