import pytest

from servers.common.documents.document import DocumentError
from servers.common.documents.pdf import Pdf, clean_texts
from tests.servers.common.documents.pdfs import written

SECONDS = 60


def test_a_pdf_is_read_page_by_page():
    pdf = Pdf(written(["Hello", "World"]))
    assert pdf.read(None, SECONDS) == ("[page 1 of 2]\n\nHello\n\n[page 2 of 2]\n\nWorld", ())
    facts = pdf.facts()
    assert (facts.title, facts.author, facts.created) == ("A report", "Ann", "2021-09-06T00:01:00+02:00")


def test_only_the_requested_pages_are_read():
    text, notes = Pdf(written(["one", "two", "three", "four"])).read("2,4", SECONDS)
    assert text == "[page 2 of 4]\n\ntwo\n\n[page 4 of 4]\n\nfour"
    assert notes == ()


def test_a_page_beyond_the_last_is_refused_with_the_number_of_pages():
    with pytest.raises(DocumentError, match="there are only 2 pages, so there is no page 3") as caught:
        Pdf(written(["one", "two"])).read("3-4", SECONDS)
    assert caught.value.code == "bad_argument"


def test_a_pdf_with_a_password_is_refused():
    with pytest.raises(DocumentError, match="the PDF needs a password") as caught:
        Pdf(written(["Hello"], "secret"))
    assert caught.value.code == "unreadable"


def test_an_encrypted_pdf_without_a_password_is_read():
    pdf = Pdf(written(["Hello"], ""))
    assert pdf.is_encrypted
    assert "Hello" in pdf.read(None, SECONDS).text


def test_a_long_pdf_is_truncated_with_a_note_how_to_continue(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("servers.common.documents.pdf.MAX_PAGES", 2)  # writing a PDF of 2,001 pages takes long
    pdf = Pdf(written(["a", "b", "c", "d", "e"]))
    text, notes = pdf.read("1-2,4-", SECONDS)
    assert text == "[page 1 of 5]\n\na\n\n[page 2 of 5]\n\nb"
    assert notes == ('Of 5 pages, these were read: 1-2. Continue with pages="4-5".',)


def test_reading_a_pdf_ends_at_the_time_limit_with_a_note():
    pdf = Pdf(written(["Hello"]))
    assert pdf.read(None, -1).notes == ('Of 1 pages, these were read: none. Continue with pages="1".',)


def test_a_pdf_without_text_has_a_note():
    notes = Pdf(written([""])).read(None, SECONDS).notes
    assert notes == ("No page contains text: the pages may be scanned images.",)


def test_a_damaged_pdf_is_refused():
    for body in (b"%PDF-1.7\n", b"%PDF-1.7\ntrailer<</Root 1 0 R>>", b"%PDF-" + b"\xff" * 1_000):
        with pytest.raises(DocumentError, match="the PDF is damaged") as caught:
            Pdf(body)
        assert caught.value.code == "unreadable"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("ﬁve eﬀects, aﬄuent ﬂow, oﬃce", "five effects, affluent flow, office"),
        ("an exam-\nple, and more", "an example,\nand more"),
        ("soft\u00ad\nware runs", "software\nruns"),
        ("a well-\nknown name, as well-known as any", "a well-known\nname, as well-known as any"),
        ("EVALUA-\nTION of it", "EVALUATION\nof it"),
        ("the Franco-\nPrussian war", "the Franco-\nPrussian war"),
        ("1-\n2 and a -\nb", "1-\n2 and a -\nb"),
    ],
)
def test_ligatures_and_hyphenated_words_are_joined(text: str, clean: str):
    assert clean_texts([text]) == [clean]
