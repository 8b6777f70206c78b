"""The panels of the workbench, with running servers: resources, prompts, history, log, questions,
tasks, and how to connect."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from servers.bundle.host_entries import RemoteServer, remote_entry
from servers.bundle.hosts.clients import CLIENTS
from servers.bundle.hosts.configured import write_snippet
from tests.checks.browser.conftest import NewPage
from tests.checks.browser.workbench import TOKEN, Workbench
from tests.raw import ROOT
from tests.shared.transports.http.http_wire import PATIENCE, envelope, merged, routing


def call_elsewhere(workbench: Workbench, server: str, tool: str, **arguments: Any) -> None:
    """Calls a tool as another client."""
    params = {"name": tool, "arguments": arguments, "_meta": envelope()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    url, headers = f"{workbench.url}/{server}/mcp", merged(routing("tools/call", tool))
    answer = httpx.post(url, content=json.dumps(message), headers=headers, timeout=PATIENCE, trust_env=False)
    assert answer.status_code == 200, answer.text


async def copied(page: Page, button: Locator, begins: str) -> str:
    """What a button copies, which begins so. What was copied before, by another test as well, is gone then."""
    await page.evaluate("navigator.clipboard.writeText('')")
    await button.click()
    text = ""
    with anyio.fail_after(20):
        while not text.startswith(begins):
            text = await page.evaluate("navigator.clipboard.readText()")
    return text


async def log_in(page: Page, locked: Workbench, problems: list[str]) -> None:
    """Enters the token."""
    await page.goto(locked.url)
    await page.locator("#token").fill(TOKEN)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("navigation", name="Servers").get_by_text("everything")).to_be_visible()
    # Chromium logs refused requests to the console, and the first request is refused.
    problems[:] = [one for one in problems if "401" not in one]


async def read(page: Page, workbench: Workbench, server: str, name: str) -> Locator:
    """Opens a resource from the list; returns its panel."""
    await page.goto(workbench.at("s", server, "resources"))
    await page.get_by_role("list", name="Resources").get_by_role("button", name=name).click()
    return page.locator(".detail")


async def render(page: Page, workbench: Workbench, server: str, name: str, **arguments: str) -> Locator:
    """Fills in a prompt and renders it; returns its messages."""
    await page.goto(workbench.at("s", server, "prompts"))
    await page.get_by_role("button", name=name, exact=False).first.click()
    form = page.get_by_role("form", name="Arguments")
    for argument, value in arguments.items():
        await form.get_by_label(argument, exact=False).fill(value)
    await form.get_by_role("button", name="Render").click()
    return page.get_by_role("list", name="Messages").get_by_role("listitem")


async def run(page: Page, workbench: Workbench, tool: str) -> tuple[Locator, Locator]:
    """Runs a tool that asks a question; returns the dialog and the place of the outcome."""
    await page.goto(workbench.at("s", "everything", "tools", tool))
    await page.locator(f".tool[data-tool={tool}]").get_by_role("button", name="Run", exact=True).click()
    return page.get_by_role("dialog"), page.locator(".outcome")


# Resources


async def test_a_watched_resource_is_reread_on_change(page: Page, workbench: Workbench) -> None:
    (workbench.folder / "watched.txt").write_text("one\ntwo\nthree\n")
    detail = await read(page, workbench, "filesystem", "watched.txt")
    await expect(detail).to_contain_text("three")
    await detail.get_by_role("button", name="Watch", exact=True).click()
    await expect(detail.get_by_role("button", name="Watching")).to_have_attribute("aria-pressed", "true")
    (workbench.folder / "watched.txt").write_text("one\n2\nthree\n")
    await expect(detail.locator("diff-view")).to_contain_text("2")
    await expect(detail.locator("pre")).to_have_text("one\n2\nthree\n")
    await expect(detail).to_contain_text("Changed at")


async def test_leaving_a_resource_ends_its_subscription(page: Page, workbench: Workbench) -> None:
    detail = await read(page, workbench, "everything", "Watched resource")
    await detail.get_by_role("button", name="Watch", exact=True).click()
    await expect(detail.get_by_role("button", name="Watching")).to_be_visible()
    await page.goto(workbench.at("log"))
    await page.get_by_label("Method").fill("resources/unsubscribe")
    await expect(page.locator(".message-list details")).to_have_count(2)


async def test_the_watch_button_also_ends_watching(page: Page, workbench: Workbench) -> None:
    detail = await read(page, workbench, "everything", "Watched resource")
    await detail.get_by_role("button", name="Watch", exact=True).click()
    await detail.get_by_role("button", name="Watching").click()
    await expect(detail.get_by_role("button", name="Watch", exact=True)).to_have_attribute("aria-pressed", "false")
    call_elsewhere(workbench, "everything", "trigger_resource_update")
    before = await detail.locator("pre").text_content()
    await detail.get_by_role("button", name="Read again").click()
    await expect(detail.locator("pre")).not_to_have_text(before or "")
    await expect(detail.locator("diff-view")).to_contain_text("watched resource")


async def test_a_csv_file_is_shown_as_a_table(page: Page, workbench: Workbench) -> None:
    (workbench.folder / "table.csv").write_text('name,n\r\n"a, ""b""",1\r\nc,20\r\n')
    detail = await read(page, workbench, "filesystem", "table.csv")
    await expect(detail.locator("data-table")).to_contain_text('a, "b"')
    await detail.get_by_text("Source").click()
    await expect(detail.locator("pre")).to_contain_text("c,20")


async def test_markdown_is_rendered(page: Page, workbench: Workbench) -> None:
    (workbench.folder / "page.md").write_text("# A heading\n\nand *more*\n")
    detail = await read(page, workbench, "filesystem", "page.md")
    await expect(detail.get_by_role("heading", name="A heading")).to_be_visible()


async def test_a_picture_is_shown(page: Page, workbench: Workbench) -> None:
    detail = await read(page, workbench, "everything", "Static picture")
    await expect(detail.get_by_role("img")).to_be_visible()
    assert (
        await detail.get_by_role("img").evaluate("picture => picture.decode().then(() => picture.naturalWidth)") == 1
    )


async def test_binary_contents_can_be_saved(page: Page, workbench: Workbench) -> None:
    (workbench.folder / "some.bin").write_bytes(bytes(range(256)))
    detail = await read(page, workbench, "filesystem", "some.bin")
    await expect(detail).to_contain_text("256 bytes of application/octet-stream")
    async with page.expect_download() as download:
        await detail.get_by_role("button", name="Save").click()
    assert Path(await (await download.value).path()).read_bytes() == bytes(range(256))


async def test_template_arguments_are_completed_by_the_server(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("s", "everything", "resources"))
    await page.get_by_text("Data by id").click()
    form = page.get_by_role("form", name="Data by id")
    await form.get_by_role("combobox", name="id").fill("4")
    await expect(form.locator("datalist option")).to_have_count(1)
    await expect(form.locator("datalist option")).to_have_attribute("value", "456")
    await form.get_by_role("combobox", name="id").fill("a/b c")
    await form.get_by_role("button", name="Read").click()
    await expect(page.locator(".detail")).to_contain_text("test://template/a%2Fb%20c/data")
    await expect(page.locator(".detail json-view")).to_contain_text("Data for ID: a/b c")


async def test_resources_are_filtered(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("s", "everything", "resources"))
    resources = page.get_by_role("list", name="Resources").get_by_role("button")
    await expect(resources).not_to_have_count(1)
    await page.get_by_label("Filter resources").fill("BINARY")
    await expect(resources).to_have_count(1)
    await page.get_by_label("Filter resources").fill("no such thing")
    await expect(page.get_by_text("Nothing matches.")).to_be_visible()


async def test_a_changed_list_is_fetched_again(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("s", "everything", "resources"))
    extra = page.get_by_role("button", name="test://extra-resource")
    await expect(page.get_by_role("button", name="Static text")).to_be_visible()
    call_elsewhere(workbench, "everything", "trigger_resource_change")
    await expect(extra).to_be_visible()
    call_elsewhere(workbench, "everything", "trigger_resource_change")
    await expect(extra).to_have_count(0)


async def test_the_error_of_an_unreadable_resource_is_shown(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("s", "everything", "resources", "test%3A%2F%2Fnothing"))
    await expect(page.locator(".detail").get_by_role("alert")).to_contain_text("not found")


# Prompts


async def test_a_prompt_is_filled_in_and_rendered(page: Page, workbench: Workbench) -> None:
    messages = await render(page, workbench, "everything", "Prompt with arguments", arg1="<b>1</b>", arg2="two")
    await expect(messages).to_have_count(1)
    await expect(messages).to_contain_text("arg1='<b>1</b>', arg2='two'")
    await expect(messages.locator(".badge")).to_have_text("user")


async def test_arguments_of_a_prompt_are_completed(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("s", "everything", "prompts"))
    await page.get_by_role("button", name="Prompt with arguments").click()
    await page.get_by_label("arg1").press_sequentially("tes")
    suggested = page.locator(".field").filter(has=page.get_by_label("arg1")).locator("option")
    await expect(suggested).to_have_count(3)
    await page.get_by_label("arg1").press_sequentially("ti")
    await expect(suggested).to_have_count(1)
    await expect(suggested).to_have_attribute("value", "testing")


async def test_a_prompt_conversation_shows_both_roles(page: Page, workbench: Workbench) -> None:
    messages = await render(page, workbench, "everything", "Prompt with both roles")
    await expect(messages.locator(".badge")).to_have_text(["user", "assistant", "user"])


async def test_a_prompt_may_have_an_image(page: Page, workbench: Workbench) -> None:
    messages = await render(page, workbench, "everything", "Prompt with an image")
    await expect(messages.get_by_role("img")).to_be_visible()


async def test_a_prompt_may_elicit_input(page: Page, workbench: Workbench) -> None:
    messages = await render(page, workbench, "everything", "Prompt that asks back")
    await page.get_by_role("dialog").get_by_label("context").fill("a ship")
    await page.get_by_role("dialog").get_by_role("button", name="Send").click()
    await expect(messages).to_contain_text("Answer in this context: a ship")


async def test_a_missing_required_argument_is_reported(page: Page, workbench: Workbench) -> None:
    messages = await render(page, workbench, "everything", "Prompt with arguments", arg1="one")
    assert await page.get_by_label("arg2").evaluate("input => input.validity.valueMissing")
    await expect(messages).to_have_count(0)


# History


async def entry(page: Page, workbench: Workbench, text: str) -> Locator:
    """Returns the entry of a request in the history."""
    await page.goto(workbench.at("history"))
    return page.get_by_role("list", name="Requests, newest first").locator(":scope > li").filter(has_text=text)


async def test_a_request_is_repeated_from_the_history(page: Page, workbench: Workbench) -> None:
    await render(page, workbench, "everything", "Simple prompt")
    await expect(page.get_by_role("list", name="Messages")).to_be_visible()
    row = await entry(page, workbench, "prompts/get test_simple_prompt")
    await row.get_by_role("button", name="Repeat").click()
    await expect(row.locator(".answer")).to_contain_text("This is a simple prompt for testing.")
    await expect(row).to_have_count(1)


async def test_a_command_copied_from_the_history_repeats_the_request(page: Page, workbench: Workbench) -> None:
    text = 'it\'s $HOME `x` \\ "quoted" 50% – ü\u202e\u001b[2J'
    await page.goto(workbench.at("s", "everything", "tools", "echo"))
    tool = page.locator(".tool[data-tool=echo]")
    await tool.get_by_label("text").fill(text)
    await tool.get_by_role("button", name="Run", exact=True).click()
    await expect(page.locator(".outcome")).to_contain_text("quoted")
    row = await entry(page, workbench, "tools/call echo")
    command = await copied(page, row.get_by_role("button", name="Copy as command"), "mcp-server-bundle call")
    words = shlex.split(command)[1:]
    bundle = [sys.executable, "-m", "servers", *words]
    said = subprocess.run([*bundle, "--json"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(said.stdout)["content"][0]["text"] == text
    curl = await copied(page, row.get_by_role("button", name="Copy as curl"), "curl")
    answer = subprocess.run(["sh", "-c", curl], capture_output=True, text=True, check=True, timeout=60)
    result = json.loads(answer.stdout.partition("data: ")[2] or answer.stdout)["result"]
    assert result["content"][0]["text"] == text
    assert not {"\u202e", "\x1b"} & set(command + curl)


async def test_arguments_marked_in_the_schema_are_sent_as_headers(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("s", "everything", "tools", "test_x_mcp_header"))
    tool = page.locator(".tool[data-tool=test_x_mcp_header]")
    await tool.get_by_label("region").fill("eu-west")
    await tool.get_by_role("button", name="Run", exact=True).click()
    row = await entry(page, workbench, "tools/call test_x_mcp_header")
    curl = await copied(page, row.get_by_role("button", name="Copy as curl"), "curl")
    assert "Mcp-Param-Region: eu-west" in curl
    answer = subprocess.run(["sh", "-c", curl], capture_output=True, text=True, check=True, timeout=60)
    assert '"result"' in answer.stdout


async def test_repeating_a_changing_tool_asks_for_confirmation(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("s", "everything", "tools", "trigger_resource_update"))
    tool = page.locator(".tool[data-tool=trigger_resource_update]")
    await tool.get_by_role("button", name="Run", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Run it").click()
    await expect(page.locator(".outcome")).to_contain_text("is now at version")
    row = await entry(page, workbench, "tools/call trigger_resource_update")
    await row.get_by_role("button", name="Repeat").click()
    await page.get_by_role("dialog").get_by_role("button", name="Don’t").click()
    await expect(row.get_by_role("button", name="Repeat")).to_be_enabled()
    await expect(row.locator(".answer")).to_be_empty()


async def test_the_token_is_shown_nowhere(page: Page, locked: Workbench, problems: list[str]) -> None:
    await log_in(page, locked, problems)
    await read(page, locked, "everything", "Static text")
    row = await entry(page, locked, "resources/read test://static-text")
    command = await copied(page, row.get_by_role("button", name="Copy as command"), "mcp-server-bundle read")
    curl = await copied(page, row.get_by_role("button", name="Copy as curl"), "curl")
    configuration = await copied(page, row.get_by_role("button", name="Copy configuration"), "{")
    assert command.endswith("--token-variable MCP_TOKEN")
    assert '-H "Authorization: Bearer $MCP_TOKEN"' in curl
    assert "Bearer ${MCP_TOKEN}" in configuration
    seen = [command, curl, configuration, page.url]
    for panel in ("history", "log", "connect"):
        await page.goto(locked.at(panel))
        await expect(page.locator(".panel")).to_be_visible()
        seen.append(await page.content())
    assert TOKEN not in "\n".join(seen)


# Log


async def test_messages_are_filtered(page: Page, workbench: Workbench) -> None:
    await render(page, workbench, "everything", "Simple prompt")
    await expect(page.get_by_role("list", name="Messages")).to_be_visible()
    await page.goto(workbench.at("s", "prompts", "prompts"))
    await expect(page.get_by_role("list", name="Prompts").get_by_role("button").first).to_be_visible()
    await page.goto(workbench.at("log"))
    rows = page.locator(".message-list details")
    await page.get_by_label("Method").fill("PROMPTS/")
    await expect(rows).to_have_count(6)
    await page.get_by_role("combobox", name="Server").select_option("everything")
    await expect(rows).to_have_count(4)
    await page.get_by_role("combobox", name="Direction").select_option("received")
    await expect(rows).to_have_count(2)
    await page.get_by_label("Text").fill("simple prompt for testing")
    await expect(rows).to_have_count(1)
    await rows.locator("summary").click()
    await expect(rows.locator("json-view")).to_contain_text("This is a simple prompt for testing.")


async def test_the_log_can_be_stopped_and_cleared(page: Page, workbench: Workbench) -> None:
    detail = await read(page, workbench, "everything", "Static text")
    await expect(detail).to_contain_text("static text resource")
    row = await entry(page, workbench, "resources/read")
    await page.goto(workbench.at("log"))
    rows = page.locator(".message-list details")
    await expect(rows.first).to_be_visible()
    await page.get_by_role("button", name="Clear").click()
    await expect(rows).to_have_count(0)
    await page.get_by_role("button", name="Pause").click()
    await page.goto(workbench.at("history"))
    await row.get_by_role("button", name="Repeat").click()
    await expect(row.locator(".answer")).not_to_be_empty()
    await page.goto(workbench.at("log"))
    await expect(rows).to_have_count(2)


# Questions


async def test_a_form_is_filled_in(page: Page, workbench: Workbench) -> None:
    dialog, outcome = await run(page, workbench, "test_elicitation")
    await expect(dialog).to_contain_text("Please say who you are.")
    await dialog.get_by_label("username", exact=False).fill("Ada")
    await dialog.get_by_label("email", exact=False).fill("ada@example.org")
    await dialog.get_by_role("button", name="Send").click()
    await expect(outcome).to_contain_text("action=accept")
    await expect(outcome).to_contain_text("ada@example.org")


async def test_an_invalid_form_is_not_sent(page: Page, workbench: Workbench) -> None:
    dialog, _ = await run(page, workbench, "test_elicitation")
    await dialog.get_by_role("button", name="Send").click()
    await expect(dialog.locator("[aria-invalid=true]").first).to_be_visible()
    await dialog.get_by_role("button", name="Cancel").click()


@pytest.mark.parametrize(("button", "action"), [("Decline", "decline"), ("Cancel", "cancel"), (None, "cancel")])
async def test_a_question_can_be_declined_or_cancelled(
    page: Page, workbench: Workbench, button: str | None, action: str
) -> None:
    dialog, outcome = await run(page, workbench, "test_elicitation")
    await expect(dialog).to_be_visible()
    if button is None:
        await page.keyboard.press("Escape")
    else:
        await dialog.get_by_role("button", name=button, exact=True).click()
    await expect(outcome).to_contain_text(f"action={action}")
    await expect(dialog).to_have_count(0)


@pytest.mark.parametrize("tool", ["test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"])
async def test_the_choices_of_a_form_are_sent(page: Page, workbench: Workbench, tool: str) -> None:
    dialog, outcome = await run(page, workbench, tool)
    await expect(dialog.get_by_role("combobox").first).to_be_visible()
    for choice in await dialog.get_by_role("combobox").all():
        await choice.select_option(index=1)
    await dialog.get_by_role("button", name="Send").click()
    await expect(outcome).to_contain_text("Elicitation completed: action=accept")


async def test_a_url_to_visit_is_shown_in_full_and_opened_by_a_click(
    page: Page, workbench: Workbench, problems: list[str]
) -> None:
    await page.context.route("https://example.com/**", lambda route: route.fulfill(body="consent"))
    dialog, outcome = await run(page, workbench, "elicit_visit")
    await expect(dialog.get_by_label("Address")).to_have_text("https://example.com/consent")
    async with page.expect_popup() as opened:
        await dialog.get_by_role("link", name="Open example.com").click()
    assert (await opened.value).url == "https://example.com/consent"
    await expect(outcome).to_contain_text("The user has opened the page.")
    assert len(problems) == 2, "the window, and the request for it"
    problems.clear()


async def test_only_web_addresses_are_opened(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("s", "everything", "tools", "elicit_visit"))
    tool = page.locator(".tool[data-tool=elicit_visit]")
    await tool.get_by_label("url").fill("javascript:canary()")
    await tool.get_by_role("button", name="Run", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Address")).to_have_text("javascript:canary()")
    await expect(dialog.get_by_role("link")).to_have_count(0)
    await dialog.get_by_role("button", name="Decline").click()
    await expect(page.locator(".outcome")).to_contain_text("chose to decline")


async def test_the_user_may_answer_a_sampling_request(page: Page, workbench: Workbench) -> None:
    dialog, outcome = await run(page, workbench, "test_sampling")
    await expect(dialog.get_by_role("list", name="Messages")).to_contain_text("Say hello.")
    await dialog.get_by_label("Answer").fill("Good day!")
    await dialog.get_by_role("button", name="Send").click()
    await expect(outcome).to_contain_text("LLM response: Good day!")


async def test_a_sampling_request_can_be_refused(page: Page, workbench: Workbench) -> None:
    dialog, outcome = await run(page, workbench, "test_sampling")
    await dialog.get_by_role("button", name="Refuse").click()
    await expect(outcome.locator(".error")).to_contain_text("refused")


async def test_a_question_closes_with_its_call(page: Page, workbench: Workbench) -> None:
    dialog, _ = await run(page, workbench, "test_elicitation")
    await expect(dialog).to_be_visible()
    # The dialog is modal: only a script can press a button behind it.
    await page.get_by_role("button", name="Cancel", include_hidden=True).first.evaluate("button => button.click()")
    await expect(dialog).to_have_count(0)


# Tasks


async def begin(page: Page, workbench: Workbench, tool: str, **arguments: str) -> Locator:
    """Starts a call as a task; returns its row."""
    await page.goto(workbench.at("s", "everything", "tasks"))
    await page.get_by_label("Tool", exact=True).select_option(tool)
    for name, value in arguments.items():
        await page.get_by_label(name, exact=False).fill(value)
    await page.get_by_role("button", name="Start as task").click()
    return page.get_by_role("list", name="Tasks").locator(":scope > li").first


async def test_a_task_is_followed_to_its_result(page: Page, workbench: Workbench) -> None:
    row = await begin(page, workbench, "slow_compute", seconds="0.5", label="digging")
    await expect(row.locator(".badge").first).to_have_text("completed")
    await expect(row).to_contain_text("digging took 0.5 seconds.")


async def test_a_task_is_cancelled(page: Page, workbench: Workbench) -> None:
    row = await begin(page, workbench, "slow_compute", seconds="600")
    await expect(row.locator(".badge").first).to_have_text("working")
    await row.get_by_role("button", name="Cancel").click()
    await expect(row.locator(".badge").first).to_have_text("cancelled")


async def test_a_task_may_ask_a_question(page: Page, workbench: Workbench) -> None:
    row = await begin(page, workbench, "confirm_delete", filename="notes")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Delete notes?")
    await dialog.get_by_role("button", name="Decline").click()
    await expect(row).to_contain_text("Left alone: notes")


async def test_questions_are_shown_one_after_another(page: Page, workbench: Workbench) -> None:
    row = await begin(page, workbench, "multi_input")
    dialog = page.get_by_role("dialog")
    for text in ("What is your name?", "Please confirm."):
        await expect(dialog).to_have_count(1)
        await expect(dialog).to_contain_text(text)
        await dialog.get_by_role("button", name="Decline").click()
    await expect(row).to_contain_text("name: decline, confirm: decline")


@pytest.mark.parametrize(
    ("tool", "said"), [("failing_job", "has failed"), ("protocol_error_job", "a protocol error")]
)
async def test_a_failed_task_is_shown(page: Page, workbench: Workbench, tool: str, said: str) -> None:
    row = await begin(page, workbench, tool)
    await expect(row.locator(".badge").first).to_have_text("failed")
    await expect(row).to_contain_text(said)


async def test_tasks_continue_after_their_panel_is_closed(page: Page, workbench: Workbench) -> None:
    await begin(page, workbench, "slow_compute", seconds="0.5", label="sowing")
    await page.goto(workbench.at("s", "everything", "prompts"))
    await expect(page.get_by_role("button", name="Simple prompt")).to_be_visible()
    await page.goto(workbench.at("s", "everything", "tasks"))
    await expect(page.get_by_role("list", name="Tasks")).to_contain_text("sowing took 0.5 seconds.")


async def test_tasks_of_a_user_are_listed_in_another_window(
    new_page: NewPage, locked: Workbench, problems: list[str]
) -> None:
    one, other = await new_page(), await new_page()
    for page in (one, other):
        await log_in(page, locked, problems)
    row = await begin(one, locked, "slow_compute", seconds="0.5", label="reaping")
    await expect(row).to_contain_text("reaping took")
    await other.goto(locked.at("s", "everything", "tasks"))
    there = other.get_by_role("list", name="Tasks").locator(":scope > li")
    await there.get_by_role("button", name="Result").click()
    await expect(there).to_contain_text("reaping took 0.5 seconds.")


# Connecting


async def shown_for(page: Page, name: str) -> tuple[str, str]:
    """Returns the command and the file entry that the page shows for a client."""
    part = page.locator(f"[data-client={name}]")
    await part.locator("summary").click()
    install, entry = await part.locator("pre").all_text_contents()
    return install, entry


async def test_the_connect_page_has_the_entry_of_each_client(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("connect"))
    await page.get_by_label("Server", exact=True).select_option("everything")
    url = f"{workbench.url}/everything/mcp"
    await expect(page.locator("[data-client] summary")).to_have_text([client.title for client in CLIENTS])
    for client in CLIENTS:
        install, entry = await shown_for(page, client.name)
        configured = remote_entry(client, "everything-http", RemoteServer(url), {})
        if client.http is None:
            configured = configured._replace(command="/path/to/mcp-server-bundle", args=("connect", url), env={})
        assert entry == write_snippet(client, [configured]), client.name
        words = ["install", "--url", url, "--name", "everything-http", "--client", client.name]
        assert shlex.split(install)[1:] == words
        await expect(page.locator(f"[data-client={client.name}]")).to_contain_text(client.reload_action)


async def test_entries_have_a_variable_instead_of_the_token(
    page: Page, locked: Workbench, problems: list[str]
) -> None:
    await log_in(page, locked, problems)
    await page.goto(locked.at("connect"))
    await page.get_by_label("Server", exact=True).select_option("everything")
    there = RemoteServer(f"{locked.url}/everything/mcp", token_variable="MCP_TOKEN")
    for client in CLIENTS:
        install, entry = await shown_for(page, client.name)
        if client.http is not None and (client.http.variable or client.http.bearer):
            assert entry == write_snippet(client, [remote_entry(client, "everything-http", there, {})])
            assert install.endswith(" --token-variable MCP_TOKEN")
        else:
            assert "--token-file /path/to/token" in install


async def test_a_button_copies_each_entry(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("connect"))
    text = await copied(page, page.get_by_role("button", name="Copy: URL"), "http")
    assert f"{workbench.url}/sqlite/mcp" in text.splitlines()
    await expect(page.get_by_role("status")).to_have_text("Copied")
