"""Sample calls for the apps: one for each tool with an app, and a sign that its view is complete."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import FrameLocator, Locator

__all__ = ["SAMPLES", "Place", "Sample", "sample"]

SALES = (
    "SELECT substr(placed, 1, 7) AS month, count(*) AS orders, round(sum(total)) AS total "
    "FROM sales GROUP BY 1 ORDER BY 1"
)
EDITS = [{"oldText": "- [ ] clean the oven", "newText": "- [x] clean the oven\n- [ ] feed the starter"}]


@dataclass(frozen=True)
class Place:
    """The contents of the servers: their folder, and the address of the web site."""

    folder: Path
    site: str


@dataclass(frozen=True)
class Sample:
    """One app: its tool, and the arguments of a call."""

    name: str
    server: str
    tool: str
    uri: str
    arguments: Callable[[Place], dict[str, Any]]
    shown: Callable[[FrameLocator], Locator]
    """Something in the view that only comes of the result."""
    use: Callable[[FrameLocator], Awaitable[None]] | None = None
    """Does what a picture is better with."""

    async def settle(self, view: FrameLocator) -> None:
        """Expands the view if it has more to show."""
        if self.use is not None:
            await self.use(view)


async def _preview(view: FrameLocator) -> None:
    await view.get_by_role("treeitem", name="notes.md").click()
    await view.get_by_text("whoever comes by").first.wait_for()


SAMPLES = (
    Sample(
        "result",
        "sqlite",
        "read_query",
        "ui://sqlite/result",
        lambda _: {"query": SALES},
        lambda view: view.get_by_role("gridcell", name="2025-03"),
    ),
    Sample(
        "schema",
        "sqlite",
        "describe_database",
        "ui://sqlite/schema",
        lambda _: {},
        lambda view: view.get_by_text("4 tables, 1 view"),
    ),
    Sample(
        "files",
        "filesystem",
        "directory_tree",
        "ui://filesystem/files",
        lambda place: {"path": str(place.folder / "bakery")},
        lambda view: view.get_by_role("treeitem", name="notes.md"),
        _preview,
    ),
    Sample(
        "edit",
        "filesystem",
        "edit_file",
        "ui://filesystem/edit",
        lambda place: {"path": str(place.folder / "bakery" / "notes.md"), "edits": EDITS, "dryRun": True},
        lambda view: view.get_by_text("feed the starter").first,
    ),
    Sample(
        "page",
        "fetch",
        "fetch",
        "ui://fetch/page",
        lambda place: {"url": f"{place.site}/index.html"},
        lambda view: view.get_by_text("A sourdough bread takes").first,
    ),
    Sample(
        "prompt",
        "prompts",
        "render_prompt",
        "ui://prompts/prompt",
        lambda _: {"name": "explain-error", "arguments": {"error": "KeyError: 'flour'"}},
        lambda view: view.get_by_text("KeyError: 'flour'").first,
    ),
)


def sample(name: str) -> Sample:
    """Returns the sample of that name."""
    return next(one for one in SAMPLES if one.name == name)
