"""The app of the prompts server: a prompt to fill in, read and send."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Page, expect

from servers import prompts
from servers.prompts.server import app
from tests.checks.browser.framed import Framed, client_of, show_app
from tests.checks.browser.site import Site
from tests.servers.prompts.folders import write

APP = Path(prompts.__file__).parent / "apps" / "prompt.html"
TALK = """---
description: A talk.
messages:
  - role: user
    text: What is {{ thing }}?
  - role: assistant
    text: Let me think.
arguments:
  - name: thing
    required: true
---
"""


@asynccontextmanager
async def shown(where: tuple[Page, Site], name: str, *options: str | Path, **more: Any) -> AsyncIterator[Framed]:
    """Shows the app with a prompt."""
    given = [{"name": one, "value": value} for one, value in more.pop("given", {}).items()]
    call = "render_prompt", {"name": name, "arguments": given}
    async with client_of(app, *options) as client, show_app(client, APP, call, where, **more) as framed:
        yield framed


async def test_a_prompt_is_shown_rendered_and_without_marks(page: Page, site: Site) -> None:
    async with shown((page, site), "explain-error", given={"error": "boom"}) as framed:
        message = framed.view.get_by_label("Message from the user")
        await expect(message).to_contain_text("Explain the error below")
        await expect(message).to_contain_text("boom")
        await expect(message).not_to_contain_text("<library-")
        await expect(framed.view.get_by_label("error")).to_have_value("boom")


async def test_changed_arguments_render_the_prompt_again(page: Page, site: Site) -> None:
    async with shown((page, site), "explain-error", given={"error": "boom"}) as framed:
        await framed.view.get_by_label("tried").fill("to turn it off and on")
        await framed.view.get_by_role("button", name="Render").click()
        await expect(framed.view.get_by_label("Message from the user")).to_contain_text("to turn it off and on")


async def test_a_prompt_whose_arguments_are_missing_can_be_filled_in(page: Page, site: Site) -> None:
    async with shown((page, site), "explain-error") as framed:
        await expect(framed.view.get_by_text("missing_arguments")).to_be_visible()
        await framed.view.get_by_label("error").fill("bang")
        await framed.view.get_by_role("button", name="Render").click()
        await expect(framed.view.get_by_label("Message from the user")).to_contain_text("bang")


async def test_the_prompt_is_sent_to_the_chat(page: Page, site: Site) -> None:
    async with shown((page, site), "explain-error", given={"error": "boom"}) as framed:
        await framed.view.get_by_role("button", name="Send to the chat").click()
        await expect(framed.view.get_by_text("Sent.")).to_be_visible()
        (sent,) = await framed.host.all_received("ui/message")
        assert sent["role"] == "user"
        assert sent["content"][0]["text"].startswith("Explain the error below")


async def test_a_missing_argument_is_reported_at_its_field(page: Page, site: Site) -> None:
    async with shown((page, site), "explain-error") as framed:
        error = framed.view.get_by_label("error")
        await error.fill("")
        await framed.view.get_by_role("button", name="Render").click()
        await expect(error).to_be_focused()
        await expect(error).to_have_accessible_description(re.compile("A value is required."))


async def test_the_form_works_by_keyboard(page: Page, site: Site) -> None:
    async with shown((page, site), "review-code", given={"code": "print(1)"}) as framed:
        await framed.view.get_by_label("focus").select_option("security")
        await framed.view.get_by_label("code").press("Control+Enter")
        await expect(framed.view.get_by_label("Message from the user")).to_contain_text("security")


async def test_sending_is_disabled_if_the_host_accepts_no_messages(page: Page, site: Site) -> None:
    async with shown((page, site), "explain-error", given={"error": "boom"}, can={"serverTools": {}}) as framed:
        await expect(framed.view.get_by_label("Message from the user")).to_be_visible()
        await expect(framed.view.get_by_role("button", name="Send to the chat")).to_be_hidden()


async def test_several_messages_are_shown_with_their_roles(page: Page, site: Site, tmp_path: Path) -> None:
    write(tmp_path, {"talk.md": TALK})
    async with shown((page, site), "talk", tmp_path, given={"thing": "a river"}) as framed:
        await expect(framed.view.get_by_label("Message from the user")).to_contain_text("What is a river?")
        await expect(framed.view.get_by_label("Message from the assistant")).to_contain_text("Let me think.")


async def test_the_source_text_can_be_shown(page: Page, site: Site) -> None:
    async with shown((page, site), "explain-error", given={"error": "boom"}) as framed:
        await framed.view.get_by_label("As written").check()
        await expect(framed.view.get_by_label("The text")).to_contain_text("1. **What it says**")
