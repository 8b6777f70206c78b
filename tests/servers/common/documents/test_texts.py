"""Reading documents of each kind in a worker."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from servers.common.documents import texts
from servers.common.documents.document import DocumentError
from servers.common.documents.texts import DocumentTexts, may_be_document, require_libraries
from servers.common.workers.pool import Limits
from tests.servers.common.documents.archives import archive, word
from tests.servers.common.documents.pdfs import written as pdf
from tests.servers.common.documents.test_sheets import one_sheet, written
from tests.servers.common.documents.test_word import paragraph, run


@asynccontextmanager
async def opened(limits: Limits | None = None) -> AsyncIterator[DocumentTexts]:
    reader = DocumentTexts(limits)
    try:
        yield reader
    finally:
        await reader.close()


async def test_each_kind_is_read_as_markdown_or_pages_of_text():
    async with opened() as reader:
        assert (await reader.read(pdf(["one", "two"]), "2")).text == "[page 2 of 2]\n\ntwo"
        assert (await reader.read(written(one_sheet(["A", "B"], [1, 2])))).text.startswith("## Data\n\n| A | B |")
        assert (await reader.read(word(paragraph(run("Hello\u200b there"))))).text == "Hello there"


async def test_a_missing_sheet_is_refused_with_the_names_of_all_sheets():
    workbook = one_sheet(["A", "B"], [1, 2])
    workbook.create_sheet("Prices").append(["C", "D"])
    async with opened() as reader:
        assert "## Data" not in (await reader.read(written(workbook), "Prices")).text
        with pytest.raises(DocumentError, match=r"no sheet with that name. Its sheets: Data, Prices."):
            await reader.read(written(workbook), "Price")


async def test_choosing_pages_of_a_word_document_is_refused():
    async with opened() as reader:
        with pytest.raises(DocumentError, match=r"no pages to choose from. Omit pages.") as caught:
            await reader.read(word(paragraph(run("Hello"))), "1")
    assert caught.value.code == "bad_argument"


async def test_an_archive_that_is_not_a_document_starts_no_worker():
    body = archive({"a": "b"})
    assert may_be_document(body)
    async with opened() as reader:
        with pytest.raises(DocumentError) as caught:
            await reader.read(body)
        assert caught.value.code == "unsupported_type"
        assert not reader._pool.pids  # nothing else shows that no process was started


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory as well")
async def test_a_document_over_the_memory_limit_fails_alone():
    bomb = word(paragraph(run("x" * 30_000_000)))
    assert len(bomb) < 100_000
    async with opened(Limits(timeout=5, mebibytes=64)) as reader:
        with pytest.raises(DocumentError) as caught:
            await reader.read(bomb)
        assert caught.value.code == "unreadable"
        assert (await reader.read(pdf(["one"]))).text.endswith("one")


def test_missing_libraries_are_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(texts, "LIBRARIES", ("lxml", "no_such_library"))
    with pytest.raises(DocumentError, match=r"Install the extra 'documents'.") as caught:
        require_libraries()
    assert caught.value.code == "not_installed"
