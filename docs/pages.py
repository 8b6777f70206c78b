"""The pages of the site whose sources are elsewhere in the checkout, and the links between all of them.

A page links to files by their paths in the checkout, as GitHub shows it. On the site, a link to a page leads to that
page, a link to another file to a copy of it, and a link to a folder becomes plain text.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "docker/CAPACITY.md": "capacity.md",
    "docker/README.md": "containers.md",
    "shared/protocol/wire/dialects/README.md": "dialects.md",
    "tests/checks/benchmarks/PROFILE.md": "profile.md",
    **{f"servers/{path.parent.name}/README.md": f"servers/{path.parent.name}.md"
       for path in sorted(ROOT.glob("servers/*/README.md"))},
}  # fmt: skip
"""Paths in the checkout, and those of their pages on the site."""
FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere, and a copy of each file that a page links to."""
    for path, place in PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    for page in list(files.documentation_pages()):
        for path in linked_files(page):
            if files.get_file_from_path(address(path)) is None:
                files.append(File.generated(config, address(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text with its links as they are on the site."""

    def on_site(label: str, target: str) -> str:
        path, _, anchor = target.partition("#")
        full = resolve(page.file, path)
        if not path or full is None or not (ROOT / full).exists():
            return f"{label}({target})"
        if (ROOT / full).is_dir():
            return label[1:-1]
        relative = posixpath.relpath(address(full), posixpath.dirname(page.file.src_uri))
        return f"{label}({relative}{'#' * bool(anchor)}{anchor})"

    return with_links(markdown, on_site)


def with_links(markdown: str, replace: Callable[[str, str], str]) -> str:
    """Return `markdown` with each link, outside blocks of code, replaced by `replace(label, target)`."""
    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(lambda link: replace(link[1], link[2]), part) for part in parts[::2]]
    return "".join(parts)


def linked_files(page: File) -> Iterator[str]:
    """Yield the paths in the checkout of the files that a page links to."""
    for prose in FENCE.split(page.content_string)[::2]:
        for link in LINK.finditer(prose):
            path = resolve(page, link[2].partition("#")[0])
            if path is not None and (ROOT / path).is_file():
                yield path


def resolve(page: File, target: str) -> str | None:
    """Return the path in the checkout of what a page links to; None for a target outside it, such as a URL."""
    source = Path(page.abs_src_path or "").relative_to(ROOT).as_posix()
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    return None if "://" in target or path.startswith("..") else path


def address(path: str) -> str:
    """Return the path on the site of the file at `path` in the checkout."""
    if path in PAGES:
        return PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}"
