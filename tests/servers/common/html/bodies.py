"""Conversion of the whole body of a page, without the choice of its main content."""

from servers.fetch.read.html.page import read_html
from servers.fetch.read.page import Format, Page

URL = "https://example.com/docs/page.html"


def read_body(body: str, head: str = "", format: Format = "markdown") -> Page:
    return read_html(f"<html><head>{head}</head><body>{body}</body></html>", URL, format, "body")


def markdown(body: str, head: str = "") -> str:
    return read_body(body, head).text


def plain(body: str) -> str:
    return read_body(body, format="text").text
