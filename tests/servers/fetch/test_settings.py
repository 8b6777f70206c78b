"""Settings: invalid network rules, and secrets that no message shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from servers.common.workers.frames import MAX_BODY
from servers.fetch.load.headers import parse_host_header
from servers.fetch.server import app
from servers.fetch.settings import Narrowing, Settings
from shared.program.messages import missing_extra_message
from shared.program.run import read_arguments


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--allow-private", "10.0.0.1/8", "'10.0.0.1/8': 10.0.0.1/8 has host bits set"),
        ("--allow-private", "fd00::/8", "'fd00::/8' is not HOST[:PORT] or NET[:PORT]; IPv6 needs brackets"),
        ("--allow-host", "https://example.com", "'https://example.com' is not a host"),
        ("--deny-host", "*.example.com", "'*.example.com' is not a host"),
        ("--allow-port", "0", "'0': a port is a number from 1 to 65535"),
        ("--ca-file", "/dev/null", "/dev/null contains no PEM certificates"),
        ("--ca-file", "/nowhere.pem", "/nowhere.pem: No such file or directory"),
        ("--ca-file", "~nobody-of-that-name/a.pem", "~nobody-of-that-name/a.pem: No such file or directory"),
    ],
)
def test_an_invalid_network_rule_is_refused(option: str, value: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{option}: {reason}")):
        read_arguments(app, "fetch", [option, value], {})


@pytest.mark.slow
def test_an_invalid_rule_stops_the_start_without_showing_the_password() -> None:
    command = [sys.executable, "-m", "servers.fetch", "--proxy-url", "socks5://me:hunter2@proxy.test"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "--proxy-url: a proxy is http[s]://[USER:PASSWORD@]HOST[:PORT]" in done.stderr
    assert "hunter2" not in done.stderr


def test_network_rules_keep_their_spelling(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----")
    settings = Settings(
        allow_private=["intranet.test:*", "[fd00::/8]:443"], allow_host=["a.test"], deny_host=["b.test"],
        allow_port=[8080], proxy_url="http://me:hunter2@proxy.test:3128", ca_file=tmp_path / "ca.pem",
    )  # fmt: skip
    assert settings.rules == (["intranet.test:*", "[fd00::/8]:443"], ["a.test"], ["b.test"], [8080])


def test_max_bytes_is_limited_by_the_reader() -> None:
    assert Settings(max_bytes=MAX_BODY).max_bytes == MAX_BODY
    with pytest.raises(ValueError, match="less than or equal to 100000000"):
        Settings(max_bytes=MAX_BODY + 1)


def test_settings_show_no_header_value() -> None:
    assert "secret" not in repr(parse_host_header("a.com=X-Key:secret"))
    assert "secret" not in repr(Settings(header=["a.com=X-Key:secret"]))
    with pytest.raises(ValidationError) as caught:
        Settings(header=["a.com=Host:secret"])
    assert "secret" not in str(caught.value)


def test_the_user_agent_is_one_line_of_ascii() -> None:
    for agent in ("", " a", "a\r\nX: 1", "ä"):
        with pytest.raises(ValidationError, match="printable ASCII, not empty, and without spaces"):
            Settings(user_agent=agent)


# Narrowed settings of a principal


def test_narrowed_hosts_have_to_be_allowed_by_the_operator() -> None:
    for allowed, given in (([], ["example.org"]), (["example.org"], ["docs.example.org"])):
        assert Settings(allow_host=allowed).narrow(Narrowing(allow_host=given)).allow_host == given
    for settings, given, wrong in (
        (Settings(allow_host=["example.org"]), ["org"], "not among the hosts"),
        (Settings(allow_host=["docs.example.org"]), ["example.org"], "not among the hosts"),
        (Settings(deny_host=["example.org"]), ["docs.example.org"], "does not allow"),
        (Settings(), [], "name at least one"),
    ):
        with pytest.raises(ValueError, match=wrong):
            settings.narrow(Narrowing(allow_host=given))


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules makes the import fail like a missing package.
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(ValidationError, match=re.escape(missing_extra_message("fetch"))):
        Settings()
