import json
from collections.abc import Sequence
from io import BytesIO

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from servers.fetch.errors import FetchError
from servers.fetch.read.pdf_page import read_pdf
from tests.servers.fetch.bodies import source


def written(pages: Sequence[str], password: str | None = None) -> bytes:
    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(200, 200)
        font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
        named = DictionaryObject({NameObject(key): NameObject(value) for key, value in font.items()})
        fonts = DictionaryObject({NameObject("/F1"): named})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(content)
    writer.add_metadata({"/Title": "A report", "/Author": "Ann", "/CreationDate": "D:20210906000100+02'00'"})
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(data := BytesIO())
    return data.getvalue()


def test_h8_a_pdf_is_read_page_by_page():
    page = read_pdf(source("pdf", written(["Hello", "World"])))
    assert page.text == "[page 1 of 2]\n\nHello\n\n[page 2 of 2]\n\nWorld"
    assert (page.kind, page.charset, page.notes) == ("pdf", "", ())
    assert (page.found.title, page.found.author) == ("A report", "Ann")
    assert page.found.published == "2021-09-06T00:01:00+02:00"


def test_metadata_of_a_pdf_tells_what_it_is():
    about = json.loads(read_pdf(source("pdf", written(["Hello"]), "metadata")).text)
    assert (about["pages"], about["title"]) == (1, "A report")


def test_h8_a_pdf_with_a_password_says_so():
    with pytest.raises(FetchError, match="the PDF needs a password") as caught:
        read_pdf(source("pdf", written(["Hello"], "secret")))
    assert caught.value.code == "unreadable"


def test_a_pdf_that_is_encrypted_and_open_to_all_is_read():
    assert "Hello" in read_pdf(source("pdf", written(["Hello"], ""))).text


def test_of_a_long_pdf_the_first_pages_are_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("servers.fetch.read.pdf_page.MAX_PAGES", 1)  # a PDF of 2,001 pages takes long to write
    page = read_pdf(source("pdf", written(["Hello", "World"])))
    assert page.text == "[page 1 of 2]\n\nHello"
    assert page.notes == ("Only the first 1 of 2 pages were read.",)


def test_a_pdf_is_read_as_far_as_its_time_allows():
    page = read_pdf(source("pdf", written(["Hello"]))._replace(seconds=-1))
    assert page.notes == ("Only the first 0 of 1 pages were read.",)


def test_a_pdf_without_text_says_so():
    assert read_pdf(source("pdf", written([""]))).notes == ("No page holds text: they may be scanned images.",)


def test_a_damaged_pdf_says_so():
    for body in (b"%PDF-1.7\n", b"%PDF-1.7\ntrailer<</Root 1 0 R>>", b"%PDF-" + b"\xff" * 1_000):
        with pytest.raises(FetchError, match="the PDF is damaged") as caught:
            read_pdf(source("pdf", body))
        assert caught.value.code == "unreadable"
