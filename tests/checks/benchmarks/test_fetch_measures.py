"""How the fetch servers are measured: the score of an extracted text, and the web server that they read."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.checks.benchmarks import fetch_articles, fetch_samples
from tests.checks.benchmarks.fetch_articles import content_of, plain, score, with_headline
from tests.checks.benchmarks.fetch_marked import characters_and_words, gold_of, page_names, page_of
from tests.checks.benchmarks.fetch_pages import served
from tests.checks.benchmarks.fetch_site import Site, reply
from tests.checks.benchmarks.machine import Watch, family, held
from tests.npm import Unavailable

TRUE = "one two three four five six"


@pytest.mark.parametrize(
    ("found", "precision", "recall"),
    [
        (TRUE, 1, 1),
        ("One: two, three! four five six", 2 / 3, 2 / 3),
        (f"{TRUE} seven eight nine", 1 / 2, 1),
        ("two three four five", 1, 1 / 3),
        ("something else", 0, 0),
    ],
)
def test_a_text_is_compared_by_runs_of_four_words(found: str, precision: float, recall: float) -> None:
    # The second page is there so that neither share is 0 in all.
    scored = score([(TRUE, found), (TRUE, TRUE)])
    assert scored.precision == pytest.approx((precision + 1) / 2)
    assert scored.recall == pytest.approx((recall + 1) / 2)
    assert scored.f1 == pytest.approx(2 * scored.precision * scored.recall / (scored.precision + scored.recall))


def test_a_page_where_nothing_was_found_counts_for_recall_alone() -> None:
    scored = score([(TRUE, ""), (TRUE, TRUE)])
    assert (scored.precision, scored.recall) == (1, 0.5)


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        ("## A *fine* __day__", "A fine day"),
        ("# A headline\n\nA day\n\n# A heading", "A day A heading"),
        (r"![a \[big\] ship](https://a.example/ship.png) sails", "sails"),
        ("see [the book](https://a.example/b_(c)) there", "see the book there"),
        ("![a ship](https://a.example/ship.png) sails", "sails"),
        ("[![a ship](s.png)](https://a.example) sails", "sails"),
        ("_so_ it is with snake_case and 2 * 3", "so it is with snake_case and 2 3"),
        (r"snake\_case, name\_", "snake_case name_"),
        ("1. first\n2. then\n\n1\\) last", "first then 1 last"),
        ("| a | b |\n| --- | --- |\n| c | <d> |", "a b c d"),
        ('![a ship](s.png "\\"All\\" of it")\n\n# A headline\n\nsails', "sails"),
        ("<https://a.example/>", "https a example"),
        ("```python\nx = 1\n```", "x 1"),
    ],
)
def test_markup_is_no_word(markdown: str, words: str) -> None:
    assert fetch_articles.words_of(plain(markdown)) == words.split()


def test_the_headline_is_counted_where_it_is_meant_to_be() -> None:
    assert fetch_articles.words_of(with_headline("# A headline\n\nA __day__")) == ["A", "headline", "A", "day"]


def test_the_marked_pages_are_of_all_kinds_and_many_languages() -> None:
    kinds, languages = zip(*((name.split("-")[0], name.split("-")[-1]) for name in page_names()), strict=True)
    assert len(kinds) >= 60
    assert all(kinds.count(kind) >= 6 for kind in ("docs", "faq", "forum", "math", "news", "product", "wiki"))
    assert {"ar", "de", "en", "es", "fr", "hi", "ja", "ru", "zh"} <= set(languages)


@pytest.mark.parametrize("name", page_names())
def test_a_marked_page_has_a_text_that_is_not_all_of_it(name: str) -> None:
    served, gold = page_of(name), characters_and_words(gold_of(name))
    assert b"data-gold" not in served
    assert 80 < len(gold) < len(characters_and_words(served.decode()))


def test_what_is_marked_as_no_part_is_not_in_the_text() -> None:
    words = characters_and_words(gold_of("math-katex-en"))
    assert (words.count("Delta"), words.count("\u0394"), words.count("171")) == (1, 0, 1)
    assert "About" not in words


def test_scripts_without_spaces_are_compared_by_characters() -> None:
    assert characters_and_words("\u7c73\u3068 rice 2") == ["\u7c73", "\u3068", "rice", "2"]


def answer(text: str, **more: object) -> bytes:
    return json.dumps({"result": {"content": [{"type": "text", "text": text}], **more}}).encode()


def test_what_a_server_says_around_a_page_is_left_out() -> None:
    ours = "http://a.example/ (200)\n<page-ab12> not to be trusted\ntitle: T\n\n# T\nthe text\n</page-ab12>"
    assert content_of(answer(ours, _meta={"length": 12})) == "# T\nthe text"
    assert content_of(answer("Contents of http://a.example/:\nthe text")) == "the text"
    assert content_of(answer("there is no such page", isError=True)) == ""


def test_without_its_folder_the_benchmark_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="--articles"):
        fetch_articles.names_of(tmp_path)


def test_the_bomb_is_a_true_one() -> None:
    packed = fetch_samples.bomb(2).partition(b"\r\n\r\n")[2]
    assert len(packed) < 100_000
    assert gzip.decompress(packed) == bytes(2 * fetch_samples.BLOCK)


def test_the_web_server_of_the_rows_serves_articles(tmp_path: Path) -> None:
    folder = tmp_path / fetch_articles.ARTICLES
    (folder / "html").mkdir(parents=True)
    (folder / "html" / "one.html.gz").write_bytes(gzip.compress(b"<p>one</p>"))
    (folder / "ground-truth.json").write_text(json.dumps({"one": {"articleBody": "one", "url": "http://a.example"}}))
    with served(tmp_path) as sites, httpx.Client(trust_env=False) as client:
        [name] = fetch_articles.names_of(tmp_path)
        assert client.get(sites.article(name)).text == "<p>one</p>"
        assert "This is page 7" in client.get(sites.ordinary(7)).text
        assert client.get(sites.marked("faq-dl-fr")).content == page_of("faq-dl-fr")
        assert client.get(sites.url("/robots.txt")).status_code == httpx.codes.NOT_FOUND


async def test_the_site_tells_what_it_was_asked_and_who_left() -> None:
    async with Site({"/": reply("yes"), "/endless": fetch_samples.endless}) as site:
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(site.url("/"))).text == "yes"
            assert (await client.get(site.url("/nowhere"))).status_code == httpx.codes.NOT_FOUND
            async with client.stream("GET", site.url("/endless")) as response:
                await anext(response.aiter_raw())
        await site.left.wait()
    assert [request.target for request in site.asked] == ["/", "/nowhere", "/endless"]
    assert site.count("/") == 1


def test_the_memory_of_all_processes_is_looked_at() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        with Watch(os.getpid()) as watch:
            assert child.pid in family(os.getpid())
        assert held(os.getpid()) > held(child.pid) > 0
        child.communicate(b"\n")
    assert watch.most >= watch.before > 0
    assert watch.growth == watch.most - watch.before
