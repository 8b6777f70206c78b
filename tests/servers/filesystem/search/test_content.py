"""Searching the lines of files."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.errors import FilesError
from servers.filesystem.search import lines
from servers.filesystem.search.content import SearchRequest, search_content
from servers.filesystem.search.files import Scope, SearchProgress
from servers.filesystem.search.matcher import Query
from servers.filesystem.search.page import Page
from servers.filesystem.search.summaries import content_text

ROOT = Path(__file__).resolve().parents[4] / "servers"


def searcher(files):
    def call(
        pattern, glob="*", *, start=".", progress=None, limit=1_000, cursor=None, max_bytes=sys.maxsize, **options
    ):
        request_options = {name: options.pop(name) for name in ("output", "context") if name in options}
        scoped = {name: options.pop(name) for name in ("include_ignored", "exclude_patterns") if name in options}
        return search_content(
            files,
            files.roots.place(start),
            Scope(glob, include_hidden=scoped.get("include_ignored", False), **scoped),
            SearchRequest(Query(pattern, **options), **request_options),
            Page(limit, max_bytes, cursor),
            progress or SearchProgress(),
        )

    return call


@pytest.fixture
def search(files):
    return searcher(files)


def write(root, **contents):
    for name, content in contents.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def matched_lines(result):
    return [(file["path"], match["line"], match["text"]) for file in result["files"] for match in file["matches"]]


def test_matches_have_file_line_number_and_text(root, search):
    write(root, a_txt="one\ntwo ones\nthree\n", b__c_txt="two\n")
    result = search("ones?$")
    assert result["files"] == [
        {
            "path": "a.txt",
            "matches": [{"line": 1, "text": "one"}, {"line": 2, "text": "two ones"}],
        }
    ]
    assert (result["searched"], result["stopped"], result["cursor"]) == (2, None, None)
    assert content_text(result) == "a.txt:1: one\na.txt:2: two ones"


def test_literal_patterns_match_exactly_and_case_matters_unless_ignored(root, search):
    write(root, a="a.b\naxb\n(\nÉ\né\n")
    assert matched_lines(search("a.b", literal=True)) == [("a", 1, "a.b")]
    assert matched_lines(search("(", literal=True)) == [("a", 3, "(")]
    assert matched_lines(search("é")) == [("a", 5, "é")]
    assert matched_lines(search("é", ignore_case=True)) == [("a", 4, "É"), ("a", 5, "é")]


def test_a_match_spans_lines_only_with_multiline(root, search):
    write(root, a="one\ntwo\nthree\n")
    assert matched_lines(search(r"one\s+two")) == []
    assert matched_lines(search("[^x]+e$")) == [("a", 1, "one"), ("a", 3, "three")]
    assert matched_lines(search(r"one\s+two", multiline=True)) == [("a", 1, "one\ntwo")]
    assert content_text(search(r"e\nt", multiline=True, context=1)) == "a:1: one\na:2: two\na-3- three"
    assert matched_lines(search(r"\w+\n", multiline=True)) == [("a", 1, "one"), ("a", 2, "two"), ("a", 3, "three")]


def test_a_pattern_with_a_line_end_needs_multiline(root, search):
    for pattern, literal in (("a\n", True), ("a\n", False), (r"a\nb", False), (r"a\\\nb", False)):
        with pytest.raises(FilesError, match="Set multiline"):
            search(pattern, literal=literal)
    write(root, a="x\\n\n")
    assert matched_lines(search(r"\\n")) == matched_lines(search(r"\n", literal=True)) == [("a", 1, "x\\n")]


def test_patterns_match_in_linear_time_or_are_refused(root, search):
    for pattern in ("(a", r"(a)\1", "a(?=b)", "(a{999}){999}", "", "a" * 5_000, "\udce9"):
        with pytest.raises(FilesError) as caught:
            search(pattern)
        assert caught.value.code == "bad_pattern", pattern
    write(root, a="a" * 100_000)
    assert matched_lines(search("(a+)+$" * 3 + "b")) == []


def test_shared_context_appears_once_and_gaps_are_marked(root, search):
    write(root, a="1\n2 x\n3\n4 x\n5\n6\n7\n8 x\n")
    result = search("x", context=1)
    assert [match["before"] + match["after"] for match in result["files"][0]["matches"]] == [
        ["1", "3"],
        ["3", "5"],
        ["7"],
    ]
    assert content_text(result).split("\n") == [
        *("a-1- 1", "a:2: 2 x", "a-3- 3", "a:4: 4 x", "a-5- 5"),
        *("--", "a-7- 7", "a:8: 8 x"),
    ]


def test_output_can_be_files_or_counts_filtered_by_globs(root, search):
    write(root, a_py="x\nx x\ny\n", a_txt="x", src__b_py="x", lib__c_py="x", d="y")
    assert content_text(search("x", output="counts")) == "a.py: 2\na.txt: 1\nlib/c.py: 1\nsrc/b.py: 1"
    paths = partial(search, "x", output="files")
    assert content_text(paths("*.py")) == "a.py\nlib/c.py\nsrc/b.py"
    assert content_text(paths("src/**")) == "src/b.py"
    assert content_text(paths("*.py", exclude_patterns=("lib",))) == "a.py\nsrc/b.py"


def test_one_file_can_be_searched(root, search):
    write(root, a="x\n", b="x\n")
    (root / "link").symlink_to("b")
    assert matched_lines(search("x", start="b")) == [("b", 1, "x")]
    assert matched_lines(search("x", start="link")) == [("link", 1, "x")]


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be", "utf-32", "utf-8-sig", "cp1252"])
def test_texts_in_other_charsets_are_searched(root, search, codec):
    text = "Le café est fermé à midi.\nIl n’y a personne à côté.\nEnfin\n"
    write(root, a_txt=text.encode(codec), b_txt="x = 1\n")
    result = search("n.y a .* côté", context=1)
    assert matched_lines(result) == [("a.txt", 2, "Il n’y a personne à côté.")]
    assert result["files"][0]["matches"][0]["after"] == ["Enfin"]
    assert result["skipped"] == 0
    assert matched_lines(search("CAFÉ", ignore_case=True)) == [("a.txt", 1, "Le café est fermé à midi.")]
    note = [line for line in content_text(result).split("\n") if line.startswith("[")]
    name = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(codec, codec)
    assert note == ([f"[charset {name}: a.txt]"] if codec != "utf-8-sig" else [])


@pytest.mark.parametrize("codec", ["utf-16", "cp932", "cp1252"])
def test_a_large_file_in_another_charset_is_searched_to_the_end(root, search, codec):
    text = {"cp932": "これは日本語のテキストです。\n", "cp1252": "Le café est fermé à midi, été.\n"}.get(
        codec, "a ☃ and more\n"
    )
    write(root, a_txt=(text * 60_000 + "the end\n" + text).encode(codec))
    assert matched_lines(search("the end")) == [("a.txt", 60_001, "the end")]
    assert search(text[:3].strip(), literal=True, output="counts")["files"][0]["count"] == 60_001


def test_a_file_of_mixed_encodings_without_nul_is_searched(root, search):
    write(root, a_txt="naïve\n".encode() + b"caf\xe9\nplain\n")
    assert [number for _, number, _ in matched_lines(search("plain"))] == [3]


def test_the_charset_note_names_three_files(root, search):
    write(root, **{f"{name}_txt": "été à côté\n".encode("utf-16") for name in "abcde"})
    assert content_text(search("côté")).endswith("[charset utf-16-le: a.txt, b.txt, c.txt and 2 more]")


def test_binary_hidden_and_ignored_files_are_not_searched(root, search):
    write(root, a="x\n", b="x\n\0", _c="x\n", _d__e="x\n", f_log="x\n", g="x")
    (root / ".gitignore").write_text("*.log\n")
    result = search("x")
    assert matched_lines(result) == [("a", 1, "x"), ("g", 1, "x")]
    assert (result["skipped"], result["ignored"], result["hidden"]) == (1, 1, 3)
    assert "[3 hidden entries not searched; includeIgnored searches them]" in content_text(result)
    # Only a directory may contain a match.
    assert search("x", glob="*.py")["hidden"] == 1
    (root / ".git").mkdir()
    assert search("x", glob="*.py")["hidden"] == 1
    assert matched_lines(search("x", include_ignored=True))[:2] == [(".c", 1, "x"), ("a", 1, "x")]
    assert len(matched_lines(search("x", include_ignored=True))) == 5


def test_links_and_special_files_are_not_searched(root, outside, search):
    (root / "link").symlink_to(outside / "secret")
    (root / "to").symlink_to(outside)
    os.mkfifo(root / "fifo")
    result = search("SECRET")
    assert (matched_lines(result), result["searched"]) == ([], 0)


def test_names_and_lines_are_escaped_and_the_uri_given(root, search):
    (root / os.fsdecode(b"a\n\xe9")).write_bytes(b"x\rb:1: y\xe2\x80\xa8c:1: z\x1b[2J\xff\n")
    uri = f"file://{root}/a%0A%E9"
    assert content_text(search("x")) == f"a\\n\\xe9 ({uri}):1: x\\rb:1: y\\u2028c:1: z\\x1b[2J\ufffd"


def test_crlf_and_byte_order_mark_are_not_part_of_a_line(root, search):
    write(root, a=b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert search("^one")["files"][0]["matches"] == [{"line": 1, "text": "one"}]
    assert matched_lines(search("two")) == [("a", 2, "two")]
    assert matched_lines(search("two$")) == [("a", 2, "two")]
    assert matched_lines(search("[^a-z ]")) == []
    assert matched_lines(search("one\ntwo", multiline=True)) == [("a", 1, "one\ntwo")]
    write(root, a=b"one\r\n\r\ntwo")
    assert matched_lines(search("^$")) == [("a", 2, "")]


@pytest.mark.parametrize("block", range(4, 9))
def test_a_crlf_split_by_a_block_is_one_line_end(root, search, monkeypatch, block):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    write(root, a=b"abc\r\nde\r\nabc\r\nf\r")
    assert matched_lines(search("c$")) == [("a", 1, "abc"), ("a", 3, "abc")]
    assert [number for _, number, _ in matched_lines(search("\\r"))] == [4]


def test_long_lines_are_truncated_around_the_match(root, search):
    write(root, a="é" * 2_000 + "needle" + "é" * 2_000)
    (match,) = search("needle")["files"][0]["matches"]
    assert "needle" in match["text"]
    assert (len(match["text"]), match["text"][0], match["text"][-1]) == (502, "…", "…")


def test_the_last_line_end_begins_no_further_line(root, search):
    write(root, a="one\n\n", b="", c="\n", d="two\n")
    everything = [("a", 1, "one"), ("a", 2, ""), ("c", 1, ""), ("d", 1, "two")]
    assert matched_lines(search("^")) == matched_lines(search("$", multiline=True)) == everything
    assert matched_lines(search("^$")) == [("a", 2, ""), ("c", 1, "")]


def every_page(search, **options):
    result = search(**options)
    matches = matched_lines(result)
    while result["cursor"]:
        result = search(cursor=result["cursor"], **options)
        matches += matched_lines(result)
    return matches


def test_pages_continue_within_a_file(root, search):
    write(root, a="x\ny\nx\nx\n", b__c="x\nx\n", b__d="y", e="x")
    everything = matched_lines(search("x"))
    assert len(everything) == 6
    for bound in ({"limit": 1}, {"limit": 2}, {"limit": 3}, {"max_bytes": 50}):
        assert every_page(partial(search, "x"), **bound) == everything, bound
    pages = every_page(partial(search, r"x\ny", multiline=True), limit=1)
    assert pages == matched_lines(search(r"x\ny", multiline=True)) != []


def test_pages_of_counts_continue_after_the_limit(root, search):
    write(root, a="x", b="x", c="x")
    first = search("x", output="counts", limit=2)
    assert (len(first["files"]), first["stopped"]) == (2, "limit")
    assert content_text(search("x", output="counts", limit=2, cursor=first["cursor"])) == "c: 1"


def test_a_search_ends_at_its_deadline_or_when_cancelled(root, search):
    write(root, a="x\n", b="x\n", c="x\n")
    ticks = iter(range(100))
    result = search("x", progress=SearchProgress(4, lambda: next(ticks)))
    assert result["stopped"] == "time"
    assert matched_lines(result) + matched_lines(search("x", cursor=result["cursor"])) == matched_lines(search("x"))
    progress = SearchProgress()
    progress.cancel()
    result = search("x", progress=progress)
    assert (result["stopped"], result["searched"]) == ("cancelled", 1)


def test_a_search_in_blocks_finds_the_same_as_in_the_whole(root, search, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64)
    numbers = range(1, 200)
    write(root, a="".join(f"line {number}\n" for number in numbers), b="x" * 1_000 + "\nx\n" + "y" * 1_000)
    hits = search("line .*[37]$", context=2)["files"][0]["matches"]
    assert [hit["line"] for hit in hits] == [number for number in numbers if number % 10 in (3, 7)]
    for hit in hits:
        around = [*hit["before"], hit["text"], *hit["after"]]
        assert around == [f"line {number}" for number in range(hit["line"] - 2, min(hit["line"] + 3, 200))]
    # A line longer than a block is one match.
    assert [match["line"] for match in search("x", context=3)["files"][0]["matches"]] == [1, 2]
    for pattern, count in ("x", 2), ("line 1", 111), ("line 1.*", 111):
        assert [file["count"] for file in search(pattern, output="counts")["files"]] == [count]


def test_a_multiline_search_skips_files_too_large_to_read_whole(root, search, monkeypatch):
    monkeypatch.setattr(lines, "MAX_WHOLE", 3)
    write(root, a="xxxx", b="x")
    result = search("x", multiline=True)
    assert (matched_lines(result), result["skipped"]) == ([("b", 1, "x")], 1)


def test_both_walkers_find_the_same_lines(either, root):
    write(root, a="x\n", b__c="x\n")
    assert matched_lines(searcher(either)("x")) == [("a", 1, "x"), ("b/c", 1, "x")]


def test_a_search_leaves_no_descriptor_open(root, search, no_leak):
    write(root, a="x\nx\n", b__c="x\n", b__d="\0")
    os.mkfifo(root / "b" / "e")
    for limit in (1, 2, 9):
        search("x", limit=limit)
        search("x", start="a", limit=limit)


def test_a_regular_expression_without_re2_names_the_package(root, search, monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    write(root, a="x")
    with pytest.raises(FilesError, match="google-re2") as caught:
        search("x+")
    assert caught.value.code == "not_installed"
    assert matched_lines(search("x")) == [("a", 1, "x")]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("rg") is None, reason="compares with ripgrep: apt-get install ripgrep")
@pytest.mark.parametrize("pattern", [r"def \w+\(", "^$", r"\bself\b.*:$", r"[^a]+\s=", "é|ß"])
def test_a_search_of_this_repository_agrees_with_ripgrep(pattern):
    folder = RootedFiles(Roots([ROOT]))
    result = searcher(folder)(pattern, limit=100_000)
    matches = {(file["path"], match["line"]) for file in result["files"] for match in file["matches"]}
    command = ["rg", "--no-config", "--no-heading", "-n", "--no-ignore-global", pattern, "."]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    rows = (row.removeprefix("./").split(":", 2) for row in listed.splitlines())
    assert matches == {(path, int(line)) for path, line, _ in rows}
    folder.close()


PIECES = st.sampled_from(["a", "b", "ab", " ", "é", "\n", "\r\n", "\n\n", "aaaa"])
PATTERNS = st.sampled_from(["a", "ab+", "^", "$", "^a", "b$", "[^b]a", r"\s", "a|é", "(?i)B", "a*", "(ab|a)b?$"])


@pytest.mark.slow
@given(text=st.lists(PIECES, max_size=40).map("".join), pattern=PATTERNS, block=st.sampled_from([8, 16, 1_000]))
def test_a_search_agrees_with_matching_line_by_line(search, root, text, pattern, block):
    longest = max((len(line.encode()) for line in text.split("\n")), default=0)
    (root / "file").write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", max(block, longest + 1))
        matches = matched_lines(search(pattern, context=1))
        counts = [file["count"] for file in search(pattern, output="counts")["files"]]
    assert sum(counts) == len(matches)
    plain = text.replace("\r\n", "\n")
    expected = plain.removesuffix("\n").split("\n") if plain else []
    python = re.compile(pattern)
    assert matches == [("file", number, line) for number, line in enumerate(expected, 1) if python.search(line)]


def test_shared_context_counts_once_against_the_size(search, root):
    (root / "a").write_text("match\n" * 1_000)
    result = search("match", context=5, max_bytes=5_000)
    text = content_text(result)
    assert result["stopped"] == "size"
    assert 2_500 < len(text) < 5_000


def test_a_page_ending_between_a_small_and_a_large_file_repeats_nothing(root, search, monkeypatch):
    monkeypatch.setattr(lines, "SMALL_FILE_BYTES", 8)
    write(root, a="x\n", b="y\n", c="x and more\n", d="x\n")
    assert every_page(partial(search, "x"), limit=1) == matched_lines(search("x"))


@pytest.mark.parametrize("rest", [{}, {"e": "one\r\n"}, {"e": "é one\n"}, {"e": "%PDF-one\n"}, {"e": b"one\0"}])
def test_files_searched_together_match_as_if_searched_alone(root, search, rest):
    write(root, a="two\none", b="one\ntwo", c="", d="\n", **rest)
    expected = {r"\Aone": "b", r"one\z": "a", "(?-m)^one": "b", "^$": "d", "^": "abd", "e$": "ab"}
    for pattern, names in expected.items():
        files = {file["path"]: file for file in search(pattern)["files"]}
        (alone,) = search(pattern, "e")["files"] or [None]
        assert files.pop("e", None) == alone, pattern
        assert list(files) == list(names), pattern
    assert search("nothing")["searched"] == 4 + bool(rest) - (rest == {"e": b"one\0"})
