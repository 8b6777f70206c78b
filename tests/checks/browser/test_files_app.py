"""The app of the filesystem server: browsing files, and applying an edit."""

import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import FrameLocator, Locator, Page, expect

from servers import filesystem
from servers.filesystem.server import app
from tests.checks.browser.framed import Framed, client_of, show_app
from tests.checks.browser.site import Site

APP = Path(filesystem.__file__).parent / "apps" / "files.html"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
LIST = "list_directory_with_sizes"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a directory with a text, an image, and a text in a directory."""
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "dot.png").write_bytes(PIXEL)
    (root / "docs" / "b.txt").write_text("below")
    return root


def item(view: FrameLocator, name: str) -> Locator:
    """Returns the entry of a name in the tree."""
    return view.get_by_role("treeitem").filter(has_text=name).last


@asynccontextmanager
async def shown(
    where: tuple[Page, Site], folder: Path, call: tuple[str, dict[str, Any]] | None = None, **options: Any
) -> AsyncIterator[Framed]:
    """Shows the app with the result of a call, by default with the files of `folder`."""
    call = call or (LIST, {"path": str(folder)})
    async with (
        client_of(app, folder, "--allow-write") as client,
        show_app(client, APP, call, where, **options) as framed,
    ):
        yield framed


async def test_the_entries_are_shown_with_their_sizes(page: Page, site: Site, folder: Path) -> None:
    async with shown((page, site), folder) as framed:
        view = framed.view
        await expect(item(view, "a.txt")).to_contain_text("14 bytes")
        await expect(item(view, "docs")).to_be_visible()
        await expect(view.get_by_role("heading", level=1)).to_have_text(str(folder))


async def test_a_directory_is_loaded_when_it_is_opened(page: Page, site: Site, folder: Path) -> None:
    async with shown((page, site), folder) as framed:
        await open_directory(item(framed.view, "docs"))
        await expect(item(framed.view, "b.txt")).to_be_visible()
        assert [arguments for name, arguments in framed.calls if name == LIST] == [{"path": f"{folder}/docs"}]


async def open_directory(directory: Locator) -> None:
    await directory.press("ArrowRight")


async def test_a_text_is_previewed_and_copied(page: Page, site: Site, folder: Path, problems: list[str]) -> None:
    async with shown((page, site), folder) as framed:
        view = framed.view
        await item(view, "a.txt").press("Enter")
        await expect(view.get_by_label("The text")).to_have_text("one\ntwo\nthree\n")
        await view.get_by_role("button", name="Copy").click()
        await expect(view.get_by_role("button", name="Copied")).to_be_visible()
        assert await page.evaluate("navigator.clipboard.readText()") == "one\ntwo\nthree\n"
    # Chromium logs each frame without clipboard permission; the text is then copied from a selection.
    problems[:] = [one for one in problems if "Clipboard API" not in one]


async def test_an_image_is_shown(page: Page, site: Site, folder: Path) -> None:
    async with shown((page, site), folder) as framed:
        view = framed.view
        await item(view, "dot.png").press("Enter")
        await expect(view.get_by_role("img", name="dot.png")).to_have_js_property("naturalWidth", 1)


async def test_a_long_text_continues_with_its_next_page(page: Page, site: Site, folder: Path) -> None:
    (folder / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 451)))
    async with shown((page, site), folder) as framed:
        view = framed.view
        await item(view, "long.txt").press("Enter")
        text = view.get_by_label("The text")
        await expect(text).to_contain_text("line 300")
        await expect(text).not_to_contain_text("line 301")
        await view.get_by_role("button", name="Show more").click()
        await expect(text).to_contain_text("line 450")
        await expect(view.get_by_role("button", name="Show more")).to_be_hidden()


async def test_a_text_of_long_lines_continues_by_its_cursor(page: Page, site: Site, folder: Path) -> None:
    (folder / "wide.txt").write_text("x" * 150_000 + "the end")
    async with shown((page, site), folder) as framed:
        view = framed.view
        await item(view, "wide.txt").press("Enter")
        text = view.get_by_label("The text")
        await expect(text).to_contain_text("xxx")
        await expect(text).not_to_contain_text("cursor")
        await view.get_by_role("button", name="Show more").click()
        await expect(text).to_contain_text("the end")


async def test_binary_files_are_named_as_such(page: Page, site: Site, folder: Path) -> None:
    (folder / "data.bin").write_bytes(bytes(range(256)) * 4)
    async with shown((page, site), folder) as framed:
        view = framed.view
        await item(view, "data.bin").press("Enter")
        await expect(view.get_by_text("No text, and nothing to show: 1.0 kB.")).to_be_visible()


async def test_changes_are_marked_and_announced(page: Page, site: Site, folder: Path) -> None:
    async with shown((page, site), folder) as framed:
        view = framed.view
        await item(view, "a.txt").press("Enter")
        await expect(view.get_by_label("The text")).to_contain_text("two")
        await until_followed(framed)
        (folder / "a.txt").write_text("changed\n")
        await expect(view.get_by_label("The text")).to_have_text("changed\n")
        await expect(view.get_by_text("changed just now")).to_be_visible()
        await expect(item(view, "a.txt")).to_contain_text("changed")
        await expect(view.locator("[data-kind=modified]").first).to_contain_text("a.txt")


async def test_new_and_deleted_files_appear_in_the_tree(page: Page, site: Site, folder: Path) -> None:
    async with shown((page, site), folder) as framed:
        view = framed.view
        await until_followed(framed)
        (folder / "new.txt").write_text("new")
        await expect(item(view, "new.txt")).to_contain_text("new")
        (folder / "dot.png").unlink()
        await expect(item(view, "dot.png")).to_have_count(0)
        (folder / "docs" / "b.txt").write_text("changed")
        await expect(item(view, "docs")).to_contain_text("changed inside")


async def test_a_change_does_not_move_the_focus(page: Page, site: Site, folder: Path) -> None:
    async with shown((page, site), folder) as framed:
        # The selection of the tree is then in the directory that is read again.
        await item(framed.view, "a.txt").press("Enter")
        await until_followed(framed)
        reload = framed.view.get_by_role("button", name="Reload")
        await reload.focus()
        (folder / "new.txt").write_text("new")
        await expect(item(framed.view, "new.txt")).to_be_visible()
        await expect(reload).to_be_focused()


async def until_followed(framed: Framed) -> None:
    """Waits until the app waits for changes: it then has a cursor, and receives every change."""
    await framed.host.page.wait_for_function(
        "() => received.some(one => one.params?.name === 'changes' && one.params.arguments.cursor)"
    )


async def test_switching_updates_off_ends_all_requests(page: Page, site: Site, folder: Path) -> None:
    async with shown((page, site), folder) as framed:
        await framed.view.get_by_label("Follow changes").uncheck()
        await expect(framed.view.get_by_text("Paused")).to_be_visible()


async def test_an_edit_is_applied_after_its_diff_was_shown(page: Page, site: Site, folder: Path) -> None:
    edits = [{"oldText": "two", "newText": "2"}]
    arguments = {"path": str(folder / "a.txt"), "edits": edits, "dryRun": True}
    async with shown((page, site), folder, ("edit_file", arguments)) as framed:
        await expect(framed.view.get_by_text("Not applied yet")).to_be_visible()
        assert (folder / "a.txt").read_text() == "one\ntwo\nthree\n"
        await framed.view.get_by_role("button", name="Apply").click()
        await expect(framed.view.get_by_text("Applied.")).to_be_visible()
        assert (folder / "a.txt").read_text() == "one\n2\nthree\n"
        await framed.host.received(method="ui/update-model-context")


async def test_an_edit_of_another_file_is_applied_if_that_file_is_unchanged(
    page: Page, site: Site, folder: Path
) -> None:
    edits = [{"oldText": "below", "newText": "above", "path": str(folder / "docs" / "b.txt")}]
    arguments = {"path": str(folder / "a.txt"), "edits": edits, "dryRun": True}
    async with shown((page, site), folder, ("edit_file", arguments)) as framed:
        await framed.view.get_by_role("button", name="Apply").click()
        await expect(framed.view.get_by_text("Applied.")).to_be_visible()
        assert [given["path"] for name, given in framed.calls if name == "edit_file"][-1] == edits[0]["path"]
        assert (folder / "docs" / "b.txt").read_text() == "above"


async def test_a_failed_edit_is_reported(page: Page, site: Site, folder: Path) -> None:
    edits = [{"oldText": "two", "newText": "2"}]
    arguments = {"path": str(folder / "a.txt"), "edits": edits, "dryRun": True}
    async with shown((page, site), folder, ("edit_file", arguments)) as framed:
        (folder / "a.txt").write_text("quite another text\n")
        await framed.view.get_by_role("button", name="Apply").click()
        await expect(framed.view.get_by_text("Not applied:")).to_be_visible()
        assert (folder / "a.txt").read_text() == "quite another text\n"


async def test_an_applied_edit_cannot_be_applied_again(page: Page, site: Site, folder: Path) -> None:
    arguments = {"path": str(folder / "a.txt"), "edits": [{"oldText": "two", "newText": "2"}]}
    async with shown((page, site), folder, ("edit_file", arguments)) as framed:
        await expect(framed.view.get_by_text("Applied", exact=True)).to_be_visible()
        await expect(framed.view.get_by_role("button", name="Apply")).to_have_count(0)


async def test_ten_thousand_entries_are_bounded_in_the_page(page: Page, site: Site, folder: Path) -> None:
    for number in range(10_000):
        (folder / f"{number:05}.txt").touch()
    async with shown((page, site), folder) as framed:
        view = framed.view
        await expect(item(view, "00000.txt")).to_be_visible()
        assert await view.locator("body").evaluate("body => body.querySelectorAll('*').length") < 5_000


async def test_a_deep_tree_is_shown(page: Page, site: Site, folder: Path) -> None:
    deep = folder.joinpath(*["d"] * 60)
    deep.mkdir(parents=True)
    (deep / "bottom.txt").touch()
    async with shown((page, site), folder, ("directory_tree", {"path": str(folder)})) as framed:
        for level in range(2, 62):
            await (
                framed.view.locator(f"[aria-level='{level}']").filter(has_text=re.compile("^d/$")).press("ArrowRight")
            )
        await expect(item(framed.view, "bottom.txt")).to_have_count(1)


async def test_an_error_is_shown(page: Page, site: Site, folder: Path) -> None:
    async with shown((page, site), folder, (LIST, {"path": "/nowhere"})) as framed:
        await expect(framed.view.get_by_role("alert")).to_contain_text("outside_roots")
