"""Files as bytes, whole and in parts, and their media types."""

import pytest

from servers.filesystem.errors import FilesError
from servers.filesystem.read.binary import read_bytes
from servers.filesystem.read.media_types import media_type_of
from shared.program.files.entries import etag_of


def test_bytes_are_read_with_media_type_and_size_limit(files, root, at):
    (root / "a.png").write_bytes(b"\x89PNG")
    contents = read_bytes(files, at("a.png"), 4)
    assert (contents.data, contents.size, contents.mime) == (b"\x89PNG", 4, "image/png")
    assert contents.etag == etag_of((root / "a.png").stat())
    with pytest.raises(FilesError, match=r"has 4 bytes; the limit is 3") as caught:
        read_bytes(files, at("a.png"), 3)
    assert (caught.value.code, caught.value.suggestion) == (
        "too_large",
        "The operator can raise it with --max-result.",
    )


PARTS = [(0, 2, "01"), (3, None, "3456"), (None, 3, "012"), (8, 9, "89"), (20, 1, ""), (0, 9, "0123"), (1, 0, "")]


def test_a_byte_range_is_limited_to_the_budget(files, root, at):
    (root / "a").write_bytes(b"0123456789")
    for offset, length, data in PARTS:
        contents = read_bytes(files, at("a"), 4, offset, length)
        assert (contents.data.decode(), contents.size) == (data, 10)


def test_media_types_follow_the_suffix():
    types = {
        "a.webp": "image/webp",
        "a": None,
        "A.JPG": "image/jpeg",
        ".rs": None,
        "rs": None,
        "x.rs/a": None,
        "a.": None,
    }
    assert {name: media_type_of(name) for name in types} == types


SOURCES = [
    "rs",
    "go",
    "ts",
    "tsx",
    "java",
    "kt",
    "cpp",
    "toml",
    "yaml",
    "sql",
    "ipynb",
    "rst",
    "py",
    "js",
    "jsx",
    "rb",
]
SOURCES += [
    "c",
    "h",
    "php",
    "sh",
    "swift",
    "scala",
    "cs",
    "css",
    "json",
    "xml",
    "ini",
    "lua",
    "jl",
    "md",
    "csv",
    "vue",
]


@pytest.mark.parametrize("suffix", SOURCES)
def test_source_files_have_text_media_types(suffix):
    media_type = media_type_of(f"a.{suffix}")
    assert media_type.startswith("text/") or media_type.partition("/")[2] in OTHER_TEXTS


OTHER_TEXTS = {"toml", "yaml", "sql", "x-ipynb+json", "x-httpd-php", "x-sh", "json", "xml"}


@pytest.mark.parametrize("name", ["a", "Makefile", "a.hs", "a.unknown"])
def test_unknown_suffixes_are_text_plain_or_octet_stream_by_content(files, root, at, name):
    for data, mime in ((b"text", "text/plain"), (b"\0\xff", "application/octet-stream"), (b"", "text/plain")):
        (root / name).write_bytes(data)
        assert read_bytes(files, at(name), 100).mime == mime
