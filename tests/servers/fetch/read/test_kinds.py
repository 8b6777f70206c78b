import pytest

from servers.common.images import find_size
from servers.fetch.errors import FetchError
from servers.fetch.read.kinds import Kind, check, find_kind

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\x40\0\0\0\xc8\x08\x06\0\0\0"
GIF = b"GIF89a\x40\x01\xc8\x00\0\0\0"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xff\xc2\0\x11\x08\0\xc8\1\x40\x03"
WEBP = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\1\0\xc7\0\0"
LOSSY = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xc8\x00"
LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (319 | 199 << 14).to_bytes(4, "little")
ZIP = b"PK\x03\x04\x14\0\0\0"
WASM = b"\0asm\1\0\0\0"
RSS = b'<?xml version="1.0"?>\n<!-- news -->\n<rss version="2.0"><channel></channel></rss>'
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><text>Hi</text></svg>'


def test_the_kind_of_a_page_comes_from_its_type_or_its_bytes():
    rows = [
        # A declared type that the bytes allow.
        (b"<p>Hello", "text/html", "html"),
        (b"Hello", "text/html", "html"),
        (b"<p>Hello", "text/plain", "text"),
        (b"# Hello", "text/markdown", "markdown"),
        (b"# Hello", "text/x-markdown", "markdown"),
        (b"a { color: red }", "text/css", "text"),
        (b"let a = 1;", "text/javascript", "text"),
        (b"let a = 1;", "application/javascript", "text"),
        (b"a: 1", "application/yaml", "text"),
        (b"{}", "application/json", "json"),
        (b"{}", "text/json", "json"),
        (b"{}", "application/ld+json", "json"),
        (b"{}\n{}", "application/x-ndjson", "json"),
        (RSS, "application/rss+xml", "feed"),
        (RSS, "text/xml", "feed"),
        (RSS, "text/html", "feed"),
        (b"\xef\xbb\xbf<feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml", "feed"),
        (b"<rdf:RDF >", "application/xml", "feed"),
        ("<rss ><channel/></rss>".encode("utf-16"), "text/xml", "feed"),
        (b"<a/>", "application/xml", "text"),
        (b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "x" "y"><html xmlns="z">', "application/xml", "html"),
        (SVG, "image/svg+xml", "text"),
        ("Grüße".encode("utf-16-le"), "text/plain", "text"),
        # No declared type.
        (b"  <!doctype html><title>x", "", "html"),
        (b"<?xml version='1.0'?><html >", "", "html"),
        (RSS, "", "feed"),
        (b'{"a": 1}', "", "json"),
        (b'[{"a": 1}]', "", "json"),
        (b"[1] a footnote", "", "text"),
        (b"plain", "", "text"),
        (b"", "", "text"),
        (PNG, "", "image"),
        (b"%PDF-1.7\n", "", "pdf"),
        (ZIP, "", "other"),
        (WASM, "", "other"),
        (b"\1\2\3", "", "other"),
        # application/octet-stream: the bytes decide.
        (b"plain", "application/octet-stream", "text"),
        (b"%PDF-1.7\n", "application/octet-stream", "pdf"),
        (b"\1\2\3", "application/octet-stream", "other"),
        # A declared type that the bytes contradict.
        (PNG, "text/html", "image"),
        (JPEG, "image/png", "image"),
        (b"\r\n\0%PDF-1.7\n", "text/html", "pdf"),
        (b"<!doctype html><title>log in", "application/pdf", "html"),
        (b"<!doctype html>", "image/png", "other"),
        (b"\1\2\3", "text/plain", "other"),
        (ZIP, "text/plain", "other"),
        (b"BMW builds cars", "text/plain", "text"),
        (b'{"a": "<b>"}\n', "text/html", "json"),
        (b'{"a": 1} <p>Hello', "text/html", "html"),
        # Binary types.
        (b"text", "audio/mpeg", "other"),
        (b"text", "video/mp4", "other"),
        (b"text", "font/woff2", "other"),
        (b"text", "image/avif", "other"),
        (b"text", "application/epub+zip", "other"),
    ]
    assert [(body, declared, find_kind(declared, body).name) for body, declared, _ in rows] == rows


def test_the_name_of_a_file_tells_the_kind_of_plain_text():
    paths = {"/README.md": "markdown", "/llms.txt": "markdown", "/package.JSON?raw": "json", "/a.txt?b=c.md": "text"}
    urls = {path: f"https://raw.example{path}" for path in paths}
    assert {path: find_kind("text/plain", b"# a", url).name for path, url in urls.items()} == paths
    assert find_kind("text/css", b"# a", urls["/README.md"]).name == "text"


def test_a_zip_file_keeps_the_media_type_of_the_site():
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    assert find_kind(word, ZIP) == Kind("other", word)
    assert find_kind("application/octet-stream", ZIP) == Kind("other", "application/zip")


def test_a_binary_file_is_refused_with_type_and_size():
    for body, media_type in [(ZIP, ""), (WASM, ""), (b"\1\2", "application/octet-stream")]:
        kind = find_kind(media_type, body)
        with pytest.raises(FetchError) as caught:
            check(kind, "markdown", None, None, 12_345)
        assert caught.value.code == "unsupported_type"
        assert caught.value.reason == f'"{kind.media_type}", 12,345 bytes: it has no text that could be shown'
        assert caught.value.suggestion == "Fetch a page that describes it, or download it with another program."


def test_images_have_a_type_and_size_in_pixels():
    webp = [WEBP, LOSSY, LOSSLESS]
    for media_type, bodies in {
        "image/png": [PNG],
        "image/gif": [GIF],
        "image/jpeg": [JPEG],
        "image/webp": webp,
    }.items():
        for body in bodies:
            assert find_kind("", body) == Kind("image", media_type)
            assert find_size(body) == (320, 200)
            cut = [find_size(body[:length]) for length in range(len(body))]
            assert {*cut} <= {None, (320, 200)}


def test_an_unsupported_format_is_an_error_that_lists_the_others():
    with pytest.raises(FetchError) as caught:
        check(Kind("pdf", "application/pdf"), "html", None, None, 1)
    assert caught.value.code == "bad_argument"
    assert str(caught.value) == (
        'the page is a PDF ("application/pdf"), which can\'t be returned as html.'
        " Formats for it: markdown, metadata, text."
    )


def test_only_html_and_json_have_sections():
    check(Kind("json", "application/json"), "text", "/a", None, 1)
    with pytest.raises(FetchError, match="has no sections") as caught:
        check(Kind("text", "text/plain"), "text", "/a", None, 1)
    assert caught.value.code == "bad_argument"


def test_only_documents_have_pages():
    check(Kind("pdf", "application/pdf"), "text", None, "3", 1)
    with pytest.raises(FetchError, match='the page is HTML \\("text/html"\\), which has no pages') as caught:
        check(Kind("html", "text/html"), "text", None, "3", 1)
    assert (caught.value.code, caught.value.suggestion) == ("bad_argument", "Omit pages.")
