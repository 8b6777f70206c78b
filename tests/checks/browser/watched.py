"""A page of Chromium that notices forbidden events: errors, requests to other hosts, foreign scripts."""

from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Page, Request

__all__ = ["HOSTILE", "watch"]

HOSTILE = [
    "<img src=x onerror=canary()>",
    "<script>canary()</script>",
    "</script><script>canary()</script>",
    "<svg onload=canary()>",
    "\"><iframe srcdoc='<script>parent.canary()</script>'></iframe>",
    "javascript:canary()",
    "[link](javascript:canary())",
    "<style>*{display:none}</style>",
    "<a href=javascript:canary()>click</a>",
    "{{constructor.constructor('canary()')()}}",
    "${canary()}",
    "\u202egnp.exe \u2066\u0000\u0007\u001b[2J\ud7ff\u200b\ufeff",
]
"""Texts that a page shows and never runs. What they would call is noticed by `watch`."""


async def watch(context: BrowserContext, problems: list[str]) -> Page:
    """A new page of `context`. What goes wrong in it, or in a frame of it, is added to `problems`."""
    await context.expose_function("canary", lambda *_: problems.append("a stranger's script has run"))
    page = await context.new_page()

    def said(message: ConsoleMessage) -> None:
        # This includes policy violations, which Chromium logs as errors.
        if message.type in ("error", "warning"):
            problems.append(f"console {message.type}: {message.text}")

    def asked(request: Request) -> None:
        url = urlsplit(request.url)
        if url.scheme not in ("data", "blob", "about") and url.hostname not in ("127.0.0.1", "localhost"):
            problems.append(f"request to elsewhere: {request.url}")

    async def interrupted(dialog: Dialog) -> None:
        problems.append(f"a dialog of the browser: {dialog.message}")
        await dialog.dismiss()

    page.on("console", said)
    page.on("pageerror", lambda error: problems.append(f"error in the page: {error}"))
    page.on("crash", lambda _: problems.append("the page has crashed"))
    page.on("dialog", interrupted)
    page.on("popup", lambda popup: problems.append(f"a window that nobody asked for: {popup.url}"))
    context.on("request", asked)
    return page
