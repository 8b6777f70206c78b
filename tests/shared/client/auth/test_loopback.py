"""The way back from a login: one answer, to the one address, from the one browser that was sent."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from shared.client.auth import loopback
from shared.client.auth.loopback import Loopback
from shared.errors import AuthError
from tests.raw import NO_TLS

PAGE = "https://as.example/authorize?client_id=x&state=st"


async def login(redirect: Loopback, work: Any) -> Mapping[str, str]:
    """What comes of a login, while `work` plays the browser."""
    found: list[Mapping[str, str]] = []

    async def wait() -> None:
        found.append(await redirect.open(PAGE))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks, httpx.AsyncClient(trust_env=False, verify=NO_TLS) as browser:
            tasks.start_soon(wait)
            await work(browser, redirect.redirect_uris[0])
    return found[0]


async def test_the_answer_comes_back() -> None:
    told: list[str] = []
    pages: list[httpx.Response] = []

    async def browse(browser: httpx.AsyncClient, uri: str) -> None:
        pages.append(await browser.get(uri, params={"code": "c", "state": "st", "iss": "https://as.example"}))

    with Loopback(told.append, opens_browser=False) as redirect:
        answer = await login(redirect, browse)
    assert answer == {"code": "c", "state": "st", "iss": "https://as.example"}
    assert told == [PAGE]
    assert pages[0].status_code == 200
    assert pages[0].headers["content-security-policy"].startswith("default-src 'none'")
    assert "code" not in pages[0].text
    assert "<script" not in pages[0].text


WRONG: dict[str, dict[str, Any]] = {
    "another state": {"params": {"code": "evil", "state": "other"}},
    "no state": {"params": {"code": "evil"}},
    "two codes": {"params": [("code", "evil"), ("code", "c"), ("state", "st")]},
    "another name for this machine": {"params": {"code": "evil", "state": "st"}, "headers": {"host": "evil.example"}},
    "another method": {"method": "POST", "params": {"code": "evil", "state": "st"}},
    "more than any answer has": {"params": [("state", "st"), *((str(n), "x") for n in range(loopback.MAX_FIELDS))]},
    "another path": {"path": "/", "params": {"code": "evil", "state": "st"}},
}


@pytest.mark.parametrize("how", WRONG.values(), ids=WRONG)
async def test_what_is_no_answer_is_refused_and_ends_nothing(how: dict[str, Any]) -> None:
    async def browse(browser: httpx.AsyncClient, uri: str) -> None:
        given = dict(how)
        url = httpx.URL(uri).join(given.pop("path", uri))
        wrong = await browser.request(given.pop("method", "GET"), url, **given)
        assert wrong.status_code == 400
        await browser.get(uri, params={"code": "c", "state": "st"})

    with Loopback(lambda _: None, opens_browser=False) as redirect:
        assert (await login(redirect, browse))["code"] == "c"


async def test_addresses_are_new_each_time() -> None:
    with Loopback(print) as one, Loopback(print) as other:
        assert one.redirect_uris[0].rpartition("/")[2] != other.redirect_uris[0].rpartition("/")[2]


async def test_a_port_that_is_taken() -> None:
    with Loopback(print) as one:
        port = int(one.redirect_uris[0].split(":")[2].partition("/")[0])
        with pytest.raises(AuthError, match="can't listen on"), Loopback(print, port=port):
            pass


async def test_nobody_logs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "LOGIN_SECONDS", 0.05)  # nothing but time is different
    with (
        Loopback(lambda _: None, opens_browser=False) as redirect,
        pytest.raises(AuthError, match="no one logged in"),
    ):
        await redirect.open(PAGE)


async def test_a_page_that_is_none_of_the_web() -> None:
    with Loopback(print) as redirect, pytest.raises(AuthError, match="no login page was opened"):
        await redirect.open("file:///etc/passwd?state=st")


async def test_the_browser_of_the_system_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(lambda _: None) as redirect:
        script = tmp_path / "browser.py"
        script.write_text(
            "import sys, urllib.request\n"
            "opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n"
            f"opener.open({redirect.redirect_uris[0]!r} + '?code=c&state=' + sys.argv[1].rpartition('=')[2])\n"
        )
        monkeypatch.setenv("BROWSER", f"{sys.executable} {script} %s")
        # Or the browsers that were there at the first use would count.
        monkeypatch.setattr("webbrowser._tryorder", None)
        with anyio.fail_after(20):
            assert await redirect.open(PAGE) == {"code": "c", "state": "st"}
