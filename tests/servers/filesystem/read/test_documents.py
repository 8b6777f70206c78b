"""Documents in `read_text_file` and, on request, in `search_content`."""

import re
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from servers.common.documents import texts
from tests.servers.common.documents.archives import archive, word
from tests.servers.common.documents.pdfs import written as pdf
from tests.servers.common.documents.test_sheets import one_sheet, written
from tests.servers.common.documents.test_word import paragraph, run
from tests.servers.filesystem.serving import inside
from tests.servers.peers import InnerPeer

Server = AbstractAsyncContextManager[InnerPeer]


@pytest.fixture
def server(tmp_path: Path) -> Server:
    """A server with a PDF of three pages, a workbook, a Word document without a suffix, and an archive."""
    (tmp_path / "a.pdf").write_bytes(pdf(["one", "two", "three"]))
    (tmp_path / "b.xlsx").write_bytes(written(one_sheet(["Name", "Age"], ["Ann", 3])))
    (tmp_path / "c").write_bytes(word("".join(paragraph(run(f"line {number} ü")) for number in range(300))))
    (tmp_path / "d.zip").write_bytes(archive({"one": "two" * 100}))
    (tmp_path / "e.pdf").write_text("no PDF at all")
    return inside("--max-read", "1000", tmp_path)


async def read(peer: InnerPeer, path: Path, **more: object) -> str:
    return await peer.text("read_text_file", path=str(path), **more)


async def test_read_text_file_reads_chosen_pages_of_a_pdf(server: Server, tmp_path: Path):
    async with server as peer:
        assert await read(peer, tmp_path / "a.pdf", pages="2-") == "[page 2 of 3]\n\ntwo\n\n[page 3 of 3]\n\nthree"
        assert await read(peer, tmp_path / "a.pdf", tail=1) == "three"


async def test_a_document_without_text_is_not_an_empty_file(server: Server, tmp_path: Path):
    (tmp_path / "f.docx").write_bytes(word(""))
    async with server as peer:
        assert await read(peer, tmp_path / "f.docx") == "[the document contains no text]"


async def test_read_text_file_reads_a_sheet_by_name(server: Server, tmp_path: Path):
    async with server as peer:
        assert await read(peer, tmp_path / "b.xlsx", pages="Data", offset=5) == "| Ann | 3 |"


async def test_a_hidden_sheet_is_listed_and_read_by_name(server: Server, tmp_path: Path):
    workbook = one_sheet(["Name", "Age"])
    hidden = workbook.create_sheet("Rates")
    hidden.append(["Rate"])
    hidden.sheet_state = "hidden"
    (tmp_path / "rates.xlsx").write_bytes(written(workbook))
    async with server as peer:
        assert "Its sheets: Data, Rates (hidden)." in await read(peer, tmp_path / "rates.xlsx", pages="Ages")
        assert await read(peer, tmp_path / "rates.xlsx", pages="Rates") == "## Rates\n\nRate"


async def test_the_cursors_of_a_long_document_lead_to_the_whole_text(server: Server, tmp_path: Path):
    async with server as peer:
        whole, more = "", {}
        while True:
            page = await read(peer, tmp_path / "c", **more)
            match = re.search(r"\n\[truncated: .*; continue with cursor (\S+~)]$", page)
            whole += page if match is None else page[: match.start()]
            if match is None:
                break
            more = {"cursor": match[1]}
        assert whole == "\n\n".join(f"line {number} ü" for number in range(300))


async def test_a_cursor_contains_the_chosen_pages(server: Server, tmp_path: Path):
    async with server as peer:
        path = tmp_path / "long.pdf"
        path.write_bytes(pdf(["x" * 600] * 5))
        page = await read(peer, path, pages="2,4")
        cursor = page.rpartition("cursor ")[2].rstrip("]")
        assert cursor.endswith("~2%2C4")
        assert await read(peer, path, cursor=cursor) == "x" * 600
        refused = await peer.request(
            "tools/call", name="read_text_file", arguments={"path": str(path), "cursor": cursor, "pages": "1"}
        )
        assert "the cursor belongs to a different selection of pages. Omit pages." in str(refused)


async def test_a_text_named_pdf_is_a_text_and_an_archive_is_unsupported(server: Server, tmp_path: Path):
    async with server as peer:
        assert await read(peer, tmp_path / "e.pdf") == "no PDF at all"
        assert (await read(peer, tmp_path / "a.pdf", encoding="latin-1")).startswith("%PDF-")
        refused = await peer.request("tools/call", name="read_text_file", arguments={"path": str(tmp_path / "d.zip")})
        assert "unsupported_type: " in str(refused)


async def test_an_error_about_the_document_limit_names_no_option(server: Server, tmp_path: Path):
    with (tmp_path / "a.pdf").open("r+b") as file:
        file.truncate(texts.MAX_BYTES + 1)
    async with server as peer:
        arguments = {"path": str(tmp_path / "a.pdf")}
        refused = await peer.request("tools/call", name="read_text_file", arguments=arguments)
        assert str(refused).count("has 64,000,001 bytes; the limit for documents is 64,000,000") == 1
        assert "--max-result" not in str(refused)


async def test_documents_are_searched_with_documents_true_only(server: Server, tmp_path: Path):
    async with server as peer:
        arguments = {"path": str(tmp_path), "pattern": "two|Ann|line 7 ü"}
        text = await peer.text("search_content", **arguments)
        assert "Ann | 3" not in text
        # e.pdf is a text, so it was searched.
        assert text.endswith("\n[2 documents not read; documents=true searches their text]")
        found = await peer.text("search_content", **arguments, documents=True)
        assert found == "a.pdf:7: two\nb.xlsx:5: | Ann | 3 |\nc:15: line 7 ü\n[1 file skipped: binary or too large]"


async def test_a_search_notes_documents_not_searched_completely(server: Server, tmp_path: Path):
    (tmp_path / "e.docx").write_bytes(word(paragraph(run("seen") + run("hidden", "<w:vanish/>"))))
    async with server as peer:
        text = await peer.text("search_content", path=str(tmp_path), pattern="hidden", documents=True)
    note = "[1 document not searched completely; read_text_file says what is left out]"
    assert text.splitlines() == ["No matches found in 5 files", "[1 file skipped: binary or too large]", note]


async def test_an_error_without_the_libraries_names_the_extra(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with server as peer:
        monkeypatch.setattr(texts, "LIBRARIES", ("no_such_library",))
        for tool, more in (("read_text_file", {}), ("search_content", {"pattern": "a", "documents": True})):
            arguments = {"path": str(tmp_path / "a.pdf"), **more}
            refused = await peer.request("tools/call", name=tool, arguments=arguments)
            assert "not_installed: " in str(refused)
            assert "Install the extra 'documents'." in str(refused)


@pytest.mark.usefixtures("server")
async def test_read_multiple_files_names_read_text_file_for_documents(tmp_path: Path):
    async with inside(tmp_path) as peer:
        paths = [str(tmp_path / name) for name in ("a.pdf", "b.xlsx", "e.pdf")]
        lines = (await peer.text("read_multiple_files", paths=paths)).splitlines()
    for line in lines[:2]:
        assert line.endswith(" is a document. Use read_text_file, which reads its text.")
    assert "Error" not in lines[2]
