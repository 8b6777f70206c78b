import json

from servers.fetch.read.pdf_page import read_pdf_page
from tests.servers.common.documents.pdfs import written
from tests.servers.fetch.bodies import source


def test_a_page_of_a_pdf_has_text_and_metadata():
    page = read_pdf_page(source("pdf", written(["Hello", "World"]), pages="2"))
    assert page.text == "[page 2 of 2]\n\nWorld"
    assert (page.kind, page.charset, page.notes) == ("pdf", "", ())
    assert (page.metadata.title, page.metadata.author) == ("A report", "Ann")
    assert page.metadata.published == "2021-09-06T00:01:00+02:00"


def test_metadata_of_a_pdf_has_page_count_and_title():
    for password, encrypted in ((None, None), ("", True)):
        about = json.loads(read_pdf_page(source("pdf", written(["Hello"], password=password), "metadata")).text)
        assert (about["pages"], about["title"], about.get("encrypted")) == (1, "A report", encrypted)
