import pytest

from servers.common.documents.document import DocumentError
from servers.common.documents.kinds import document_kind
from tests.servers.common.documents.archives import archive, book, opened, shape, slides, word
from tests.servers.common.documents.test_sheets import one_sheet, written

COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def test_the_kind_of_a_document_follows_from_its_parts():
    assert document_kind(archive({"content.xml": "", "META-INF/manifest.xml": "", "mimetype": ""})) is not None
    files = [word("<w:p/>"), written(one_sheet(["a"])), slides(shape("a")), opened("text", ""), book({})]
    assert [kind[0] for file in files if (kind := document_kind(file))] == [
        *("word", "sheets", "slides", "opendocument", "epub")
    ]
    assert document_kind(opened("spreadsheet", "")) == (
        "opendocument",
        "application/vnd.oasis.opendocument.spreadsheet",
    )


def test_other_files_are_no_documents():
    for file in (archive({"a.txt": "word/document.xml [Content_Types].xml"}), b"PK\x03\x04", b"", b"text"):
        assert document_kind(file) is None


@pytest.mark.parametrize(
    ("file", "code", "words"),
    [
        (COMPOUND_FILE, "unsupported_type", "Convert it to .docx, .xlsx, .pptx or PDF first"),
        (COMPOUND_FILE + "EncryptedPackage".encode("utf-16-le"), "unreadable", "needs a password"),
        (
            archive({"[Content_Types].xml": "", "xl/workbook.bin": ""}),
            "unsupported_type",
            "Convert it to .xlsx first",
        ),
    ],
)
def test_unsupported_documents_are_refused_with_a_suggestion(file: bytes, code: str, words: str):
    with pytest.raises(DocumentError, match=words) as caught:
        document_kind(file)
    assert caught.value.code == code
