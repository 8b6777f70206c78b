"""Hosts and origins by table."""

import pytest

from shared.protocol.http.hosts import HostPolicy, is_loopback
from shared.protocol.http.rules import Headers

LOCAL = HostPolicy("127.0.0.1")
LISTED = HostPolicy(
    "0.0.0.0", ["mcp.example", "other.example:8443"], ["https://app.example", "http://[2001:db8::1]:80"]
)
OPEN = HostPolicy("0.0.0.0")
MIXED = HostPolicy("localhost", ["proxy.example"], ["https://app.example"])
ANY = HostPolicy("127.0.0.1", ["*"], ["*"])


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.1", False),
        ("localhost.example", False),
    ],
)
def test_loopback(host: str, local: bool) -> None:
    assert is_loopback(host) is local


@pytest.mark.parametrize(
    ("policy", "host", "allowed"),
    [
        (LOCAL, "localhost", True),
        (LOCAL, "localhost:8000", True),
        (LOCAL, "LocalHost:1", True),
        (LOCAL, "127.0.0.1:8000", True),
        (LOCAL, "[::1]:8000", True),
        (LOCAL, "[::1]", True),
        (LOCAL, "::1", False),
        (LOCAL, "evil.example", False),
        (LOCAL, "localhost.evil.example", False),
        (LOCAL, "evil.example:8000", False),
        (LOCAL, "127.0.0.1@evil.example", False),
        (LOCAL, "127.0.0.1:8000.evil.example", False),
        (LOCAL, "localhost:999999", False),
        (LOCAL, "localhost:80:80", False),
        (LOCAL, "localhost\n", False),
        (LOCAL, "", False),
        (LOCAL, None, False),
        (LISTED, "mcp.example", True),
        (LISTED, "MCP.example:1234", True),
        (LISTED, "other.example:8443", True),
        (LISTED, "other.example", False),
        (LISTED, "other.example:443", False),
        (LISTED, "localhost", False),
        (LISTED, None, False),
        (OPEN, "anything.example", True),
        (OPEN, None, True),
        (MIXED, "proxy.example", True),
        (MIXED, "localhost:3000", True),
        (MIXED, "evil.example", False),
        (ANY, "evil.example", True),
    ],
)
def test_hosts(policy: HostPolicy, host: str | None, allowed: bool) -> None:
    refusal = policy.check_host(Headers({} if host is None else {"host": host}))
    assert (refusal is None) is allowed
    assert refusal is None or (refusal.status, refusal.failure.id) == (403, None)


@pytest.mark.parametrize(
    ("policy", "origin", "allowed"),
    [
        (LOCAL, None, True),
        (LOCAL, "http://localhost", True),
        (LOCAL, "http://localhost:6274", True),
        (LOCAL, "https://127.0.0.1:1", True),
        (LOCAL, "http://[::1]:1", True),
        (LOCAL, "HTTP://LOCALHOST:1", True),
        (LOCAL, "null", False),
        (LOCAL, "", False),
        (LOCAL, "localhost", False),
        (LOCAL, "file://localhost", False),
        (LOCAL, "http://evil.example", False),
        (LOCAL, "http://localhost.evil.example", False),
        (LOCAL, "http://localhost:80@evil.example", False),
        (LOCAL, "http://localhost/path", False),
        (LOCAL, "http://localhost, http://evil.example", False),
        (LISTED, "https://app.example", True),
        (LISTED, "https://app.example:443", True),
        (LISTED, "HTTPS://App.Example", True),
        (LISTED, "http://[2001:db8::1]", True),
        (LISTED, "http://app.example", False),
        (LISTED, "https://app.example:8443", False),
        (LISTED, "http://localhost", False),
        (LISTED, "null", False),
        (OPEN, "https://anything.example", False),
        (OPEN, None, True),
        (MIXED, "https://app.example", True),
        (MIXED, "http://localhost:1", True),
        (ANY, "https://evil.example", True),
        (ANY, "null", False),
    ],
)
def test_origins(policy: HostPolicy, origin: str | None, allowed: bool) -> None:
    refusal = policy.check_origin(Headers({} if origin is None else {"origin": origin}))
    assert (refusal is None) is allowed
    assert refusal is None or refusal.status == 403
    assert refusal is None or "evil" not in refusal.failure.message


@pytest.mark.parametrize(("hosts", "origins"), [(["a b"], []), ([""], []), ([], ["app.example"]), ([], ["null"])])
def test_impossible_entries(hosts: list[str], origins: list[str]) -> None:
    with pytest.raises(ValueError, match="not a host or an origin"):
        HostPolicy("127.0.0.1", hosts, origins)
