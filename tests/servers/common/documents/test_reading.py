"""The common reader of all kinds of documents, and the Markdown of their trees."""

import pytest

from servers.common.documents.document import Document, DocumentError, Facts
from servers.common.documents.kinds import DOCUMENTS
from servers.common.documents.reading import document_reader, visible_document
from servers.common.html.writer import write
from tests.servers.common.documents.test_sheets import one_sheet, written


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_the_reader_of_each_kind_refuses_other_files(kind):
    with pytest.raises(DocumentError):
        document_reader(kind)(b"PK", None, None)


def test_long_cells_of_a_sheet_are_written_below_the_table():
    long = [f"{letter} " * 1_100 for letter in "xy"]
    body = written(one_sheet(["Name", "Story"], ["Ann", long[0]], ["Bob", long[1]]))
    assert write(visible_document(document_reader("sheets")(body, None, None)).body, "", "").endswith(
        "| Name | Story |\n| --- | --- |\n| Ann | (1) |\n| Bob | (2) |\n\n"
        f"(1) {long[0].strip()}\n\n(2) {long[1].strip()}"
    )


def test_hidden_text_of_a_document_is_removed_and_counted():
    seen = visible_document(Document("<p hidden>No</p><p>Yes\u200b</p>", Facts(), notes=("A note.",)))
    assert (write(seen.body, "", ""), seen.removed, seen.notes) == ("Yes", (1, 1), ("A note.",))
