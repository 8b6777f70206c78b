import time
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from zipfile import ZipFile

import pytest
import pytest_asyncio

from servers.common.workers.frames import Head
from servers.common.workers.pool import Limits, Pool
from servers.fetch.errors import FetchError
from servers.fetch.read.kinds import KindName
from servers.fetch.read.reader import PAGES, Reader, open_reader
from tests.servers.common.documents.archives import archive, opened, word
from tests.servers.common.documents.test_sheets import one_sheet, written
from tests.servers.common.documents.test_word import paragraph, run
from tests.servers.fetch.bodies import loaded

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reader() -> AsyncIterator[Reader]:
    async with open_reader(workers=1, seconds=10, mebibytes=256) as reader:
        yield reader


async def test_plain_text_is_returned_unchanged(reader: Reader):
    page = await reader.read(loaded("Grüße\n  aus Köln", "text/plain"), "markdown")
    assert page.text == "Grüße\n  aus Köln"
    assert (page.kind, page.charset) == ("text", "utf-8")


async def test_raw_returns_the_source_unchanged(reader: Reader):
    page = await reader.read(loaded(b"<title>t</title><p hidden>x</p>", "text/html"), "raw")
    assert page.text == "<title>t</title><p hidden>x</p>"


async def test_images_and_binary_files_start_no_process():
    reader = Reader(pool := Pool(PAGES, 1, Limits(10, 256)))
    with pytest.raises(FetchError, match='application/zip", 5 bytes') as caught:
        await reader.read(loaded(b"PK\x03\x04\0", "application/zip"), "markdown")
    assert caught.value.code == "unsupported_type"
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03"
    page = await reader.read(loaded(png, "image/png"), "markdown")
    assert (page.image, page.image_type, page.text) == (png, "image/png", "image/png, 2 x 3 pixels, 24 bytes")
    assert not pool.pids


async def test_xml_and_svg_are_returned_unchanged_without_expanding_entities(reader: Reader):
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    text = f'<!DOCTYPE svg [<!ENTITY l0 "lol">{laughs}<!ENTITY f SYSTEM "file:///etc/passwd">]><svg>&l9;&f;</svg>'
    for media_type in ("image/svg+xml", "application/xml"):
        page = await reader.read(loaded(text, media_type), "markdown")
        assert (page.text, page.kind) == (text, "text")


async def test_deeply_nested_html_is_read(reader: Reader):
    page = await reader.read(loaded("<html><body>" + "<div>" * 1_500 + "deep", "text/html"), "text")
    assert page.kind == "html"


async def test_invisible_characters_are_removed_and_counted(reader: Reader):
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    page = await reader.read(loaded(f"Hello{hidden}\u200b there", "text/plain"), "markdown")
    assert (page.text, page.removed.characters) == ("Hello there", 5)


async def test_a_page_is_decoded_by_its_meta_charset(reader: Reader):
    body = '<html><head><meta charset="windows-1251"></head><body><p>Привет, мир!</p></body></html>'
    page = await reader.read(loaded(body.encode("cp1251"), "text/html"), "text")
    assert "Привет, мир!" in page.text
    assert page.charset == "windows-1251"


async def test_an_error_in_the_reader_process_reaches_the_caller(reader: Reader):
    with pytest.raises(FetchError, match="the JSON has nothing at '/b'") as caught:
        await reader.read(loaded('{"a": 1}', "application/json"), "markdown", "/b")
    assert caught.value.code == "not_found"
    assert caught.value.suggestion == "The last part that exists is an object with 1 members."
    assert caught.value.quoted == '"a"'


async def test_a_damaged_page_does_not_affect_the_next(reader: Reader):
    with pytest.raises(FetchError, match="the PDF is damaged") as caught:
        await reader.read(loaded(b"%PDF-1.7\n", "application/pdf"), "markdown")
    assert caught.value.code == "unreadable"
    assert (await reader.read(loaded("one", "text/plain"), "markdown")).text == "one"


async def test_an_invalid_answer_of_a_reader_process_is_refused():
    class Taken(Pool):
        async def ask(self, kind: KindName, head: Head, body: bytes) -> tuple[Head, bytes]:
            return answers.pop(), b"\xff"

    answers = [
        {},
        {"page": []},
        {"page": {"kind": "text"}},
        {"page": {"kind": "text", "metadata": {"no": 1}, "removed": {}, "notes": []}},
        {"page": {"kind": "text", "metadata": {}, "removed": {}, "notes": 1}},
        {"error": ["unreadable"]},
        {"error": 5},
    ]
    while answers:
        with pytest.raises(FetchError, match="the process that read the page crashed") as caught:
            await Reader(Taken(PAGES, 1, Limits(1, 64))).read(loaded("one", "text/plain"), "markdown")
        assert caught.value.code == "unreadable"


async def test_terminal_control_characters_are_removed(reader: Reader):
    page = await reader.read(loaded("a" * 2_000 + "\x1b[31m\x9b1m\x00\b\tb\r\n", "text/plain"), "markdown")
    assert page.text == "a" * 2_000 + "[31m1m\tb\r\n"
    assert page.removed.characters == 4


async def test_invisible_characters_are_removed_from_metadata(reader: Reader):
    feed = "<rss version='2.0'><channel><title>a\u202ebc</title><item><title>d</title></item></channel></rss>"
    page = await reader.read(loaded(feed, "application/rss+xml"), "markdown")
    assert page.metadata.title == "abc"


async def test_documents_are_recognized_regardless_of_media_type(reader: Reader):
    for media_type in ("application/octet-stream", "application/zip", "text/html", ""):
        page = await reader.read(loaded(word(paragraph(run("Hello"))), media_type), "markdown")
        assert (page.text, page.kind) == ("Hello", "word")


async def test_a_legacy_document_is_refused_with_advice_to_convert(reader: Reader):
    with pytest.raises(FetchError, match=r"Convert it to \.docx") as caught:
        await reader.read(loaded(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "application/msword"), "markdown")
    assert caught.value.code == "unsupported_type"


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
DOCTYPE = f'<!DOCTYPE x [<!ENTITY l0 "lol">{LAUGHS}]>'
DEEP = "<w:p><w:r>" + "<w:smartTag>" * 50_000 + "</w:smartTag>" * 50_000 + "</w:r></w:p>"
WIDE = "<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 2_000_000
WORKBOOK = written(one_sheet(["a"]))


def with_part(file: bytes, name: str, text: str) -> bytes:
    with ZipFile(BytesIO(file)) as opened:
        return archive({one: text if one == name else opened.read(one) for one in opened.namelist()}, "mimetype")


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "zip": (lambda: archive({"[Content_Types].xml": "", "word/document.xml": b" " * 300_000_000}), "unpacks to more"),
    "paragraphs": (lambda: word(WIDE), "more than 256 MiB of memory"),
    "levels in Word": (lambda: word(DEEP), "nested too deeply"),
    "levels in a text": (lambda: opened("text", "<text:section>" * 9_999 + "</text:section>" * 9_999), "too deeply"),
    "entities in Word": (lambda: with_part(word(""), "word/document.xml", f"{DOCTYPE}<w>&l9;</w>"), "not XML"),
    "entities in Excel": (
        lambda: with_part(WORKBOOK, "xl/worksheets/sheet1.xml", f"{DOCTYPE}<worksheet>&l9;</worksheet>"),
        "damaged",
    ),
    "entities in a text": (lambda: with_part(opened("text", ""), "content.xml", f"{DOCTYPE}<a>&l9;</a>"), "not XML"),
    "rows": (
        lambda: opened("spreadsheet", f"<table:table>{'<table:table-row/>' * 5_000_000}</table:table>"),
        "more than 256 MiB of memory",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
async def test_a_bomb_in_a_document_ends_within_the_limits(reader: Reader, bomb: str):
    make, words = BOMBS[bomb]
    file = make()
    started = time.monotonic()
    with pytest.raises(FetchError, match=words) as caught:
        await reader.read(loaded(file), "markdown")
    assert caught.value.code == "unreadable"
    assert time.monotonic() - started < 12
    assert (await reader.read(loaded("one", "text/plain"), "markdown")).text == "one"
