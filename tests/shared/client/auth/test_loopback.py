"""`Loopback`: the local listener that gets the callback of a login."""

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
    """Returns the parameters of the callback, while `work` acts as the browser."""
    found: list[Mapping[str, str]] = []

    async def wait() -> None:
        found.append(await redirect.open(PAGE))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks, httpx.AsyncClient(trust_env=False, verify=NO_TLS) as browser:
            tasks.start_soon(wait)
            await work(browser, redirect.redirect_uris[0])
    return found[0]


async def test_the_callback_returns_the_parameters_of_its_query() -> None:
    pages_shown: list[str] = []
    pages: list[httpx.Response] = []

    async def browse(browser: httpx.AsyncClient, uri: str) -> None:
        pages.append(await browser.get(uri, params={"code": "c", "state": "st", "iss": "https://as.example"}))

    with Loopback(pages_shown.append, opens_browser=False) as redirect:
        answer = await login(redirect, browse)
    assert answer == {"code": "c", "state": "st", "iss": "https://as.example"}
    assert pages_shown == [PAGE]
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
async def test_a_wrong_request_gets_400_and_the_login_goes_on(how: dict[str, Any]) -> None:
    async def browse(browser: httpx.AsyncClient, uri: str) -> None:
        given = dict(how)
        url = httpx.URL(uri).join(given.pop("path", uri))
        wrong = await browser.request(given.pop("method", "GET"), url, **given)
        assert wrong.status_code == 400
        await browser.get(uri, params={"code": "c", "state": "st"})

    with Loopback(lambda _: None, opens_browser=False) as redirect:
        assert (await login(redirect, browse))["code"] == "c"


async def test_each_login_has_its_own_redirect_path() -> None:
    with Loopback(print) as one, Loopback(print) as other:
        assert one.redirect_uris[0].rpartition("/")[2] != other.redirect_uris[0].rpartition("/")[2]


async def test_a_port_in_use_is_an_error() -> None:
    with Loopback(print) as one:
        port = int(one.redirect_uris[0].split(":")[2].partition("/")[0])
        with pytest.raises(AuthError, match="can't listen on"), Loopback(print, port=port):
            pass


async def test_a_login_that_nobody_completes_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "LOGIN_SECONDS", 0.05)  # a shorter timeout
    with (
        Loopback(lambda _: None, opens_browser=False) as redirect,
        pytest.raises(AuthError, match="no one logged in"),
    ):
        await redirect.open(PAGE)


async def test_a_login_page_must_have_a_web_address() -> None:
    with Loopback(print) as redirect, pytest.raises(AuthError, match="no login page was opened"):
        await redirect.open("file:///etc/passwd?state=st")


async def test_the_browser_of_the_system_opens_the_login_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Loopback(lambda _: None) as redirect:
        script = tmp_path / "browser.py"
        script.write_text(
            "import sys, urllib.request\n"
            "opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n"
            f"opener.open({redirect.redirect_uris[0]!r} + '?code=c&state=' + sys.argv[1].rpartition('=')[2])\n"
        )
        monkeypatch.setenv("BROWSER", f"{sys.executable} {script} %s")
        # Otherwise the browsers registered at the first use would be opened.
        monkeypatch.setattr("webbrowser._tryorder", None)
        with anyio.fail_after(20):
            assert await redirect.open(PAGE) == {"code": "c", "state": "st"}
