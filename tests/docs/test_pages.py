"""The site of the documentation: `docs/pages.py`, and what `make docs` builds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.pages import PAGES, address, resolve, with_links
from tests import documents

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r'<(?:script|img|iframe|source)[^>]* src="?([^\s">]+)|<link[^>]* href="?([^\s">]+)')


class Page:
    """The part of a page of mkdocs that `resolve` needs."""

    def __init__(self, path: str) -> None:
        self.abs_src_path = str(ROOT / path)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("README.md", "index.md"),
        ("docs/clients/zed.md", "clients/zed.md"),
        ("servers/sqlite/README.md", "servers/sqlite.md"),
        ("docker/nginx.conf", "files/docker/nginx.conf"),
    ],
)
def test_a_file_of_the_checkout_has_a_site_address(path: str, place: str) -> None:
    assert address(path) == place


@pytest.mark.parametrize(
    ("page", "target", "path"),
    [
        ("docs/http.md", "oauth.md", "docs/oauth.md"),
        ("servers/fetch/README.md", "../../docs/http.md", "docs/http.md"),
        ("docs/http.md", "https://example.org/a.md", None),
        ("docs/http.md", "../../elsewhere.md", None),
    ],
)
def test_a_link_resolves_to_a_path_in_the_checkout(page: str, target: str, path: str | None) -> None:
    assert resolve(Page(page), target) == path  # type: ignore[arg-type]


def test_links_in_code_blocks_are_unchanged() -> None:
    text = "[a](b.md) ![c](d.png)\n\n```text\n[e](f.md)\n```\n\n[g [h]](i.md#j)\n"
    changed = with_links(text, lambda label, target: f"<{label} {target}>")
    assert changed == "<[a] b.md> <![c] d.png>\n\n```text\n[e](f.md)\n```\n\n<[g [h]] i.md#j>\n"


def test_every_document_is_on_the_site() -> None:
    listed = set(re.findall(r"\S+\.md$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {address(path) for path in {*documents.PAGES, *PAGES}} == listed


@pytest.mark.slow
def test_the_site_has_no_broken_links_or_external_resources(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(documents.PAGES)
    loaded = {a or b for page in pages for a, b in LOADED.findall(page.read_text())}
    assert [address for address in loaded if "//" in address] == []
    assert "search/search_index.json" in {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")}
