"""`open`: the workbench in a browser."""

import os
import re
import sys
import webbrowser
from pathlib import Path

import httpx
import pytest

from servers.bundle.commands import open as opening
from tests.raw import Raw
from tests.servers.bundle.refusals import not_refused
from tests.shared.transports.http.http_wire import PATIENCE

OPEN = [sys.executable, "-m", "servers", "open"]


def opened(*arguments: str, **variables: str) -> Raw:
    return Raw([*OPEN, *arguments], env={**os.environ, **variables})


def url_of(process: Raw) -> str:
    """Returns the URL that `open` prints when it serves."""
    assert process.process.stderr is not None
    line = process.process.stderr.readline().decode()
    found = re.fullmatch(r"the workbench is at (http://127\.0\.0\.1:\d+/); press Ctrl\+C to stop\n", line)
    assert found is not None, line
    return found[1]


def test_open_serves_on_loopback_and_opens_the_browser(tmp_path: Path) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    os.mkfifo(seen)
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o700)
    config = tmp_path / "bundle.yaml"
    config.write_text("host: 0.0.0.0\nport: 1\nworkers: 2\ntoken: hunter2\nservers: {prompts: {}}")
    config.chmod(0o600)
    with opened("--config", str(config), BROWSER=str(browser)) as process:
        url = url_of(process)
        assert seen.read_text().strip() == url
        metrics = httpx.get(f"{url}metrics", timeout=PATIENCE, trust_env=False)
        process.process.terminate()
        assert process.wait() == 0
        assert "hunter2" not in process.stderr()
    assert metrics.status_code == 401


@pytest.mark.slow
def test_open_uses_the_given_port_and_no_browser(tmp_path: Path) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f"#!/bin/sh\ntouch {seen}\n")
    browser.chmod(0o700)
    with opened("--no-browser", "prompts", BROWSER=str(browser)) as process:
        url = url_of(process)
        process.process.terminate()
        assert process.wait() == 0
    port = url.rstrip("/").rpartition(":")[2]
    with opened("--no-browser", "--port", port, "prompts", BROWSER=str(browser)) as process:
        assert url_of(process) == url
        process.process.terminate()
        assert process.wait() == 0
    assert not seen.exists()


def test_a_missing_browser_is_reported_with_the_url(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _url: False)
    # A thread of the command calls it; not every machine can run a process without any browser.
    opening._browse("http://127.0.0.1:8000/")
    assert capsys.readouterr().err == "no browser could be opened: open http://127.0.0.1:8000/ yourself\n"


REFUSED = [
    (["--host", "0.0.0.0"], "unrecognized arguments: --host"),
    (["--port", "65536"], "--port: it must be less than or equal to 65535"),
    (["--config", "/there/is/none"], "/there/is/none: No such file or directory"),
]


def test_unusable_arguments_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert not not_refused(capsys, opening.main, REFUSED)


def test_rare_options_are_listed_only_by_help_all(capsys: pytest.CaptureFixture[str]) -> None:
    helps = []
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit, match="0"):
            opening.main([option])
        helps.append(capsys.readouterr().out)
    assert ["--auth-issuer" in text for text in helps] == [False, True]
    assert ["--help-all also lists" in " ".join(text.split()) for text in helps] == [True, False]
    assert all("--no-browser" in text for text in helps)
