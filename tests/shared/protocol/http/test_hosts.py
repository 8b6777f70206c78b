"""Tables of accepted and refused hosts and origins."""

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


def test_loopback_hosts_are_recognized() -> None:
    ours = ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "[::1]"]
    others = ["0.0.0.0", "::", "192.168.1.1", "localhost.example"]
    assert [host for host in [*ours, *others] if is_loopback(host)] == ours


HOSTS: list[tuple[HostPolicy, list[str | None], list[str | None]]] = [
    (
        LOCAL,
        ["localhost", "localhost:8000", "LocalHost:1", "127.0.0.1:8000", "[::1]:8000", "[::1]"],
        [
            *("::1", "evil.example", "localhost.evil.example", "evil.example:8000", "127.0.0.1@evil.example", ""),
            *("127.0.0.1:8000.evil.example", "localhost:999999", "localhost:80:80", "localhost\n", None),
        ],
    ),
    (
        LISTED,
        ["mcp.example", "MCP.example:1234", "other.example:8443"],
        ["other.example", "other.example:443", "localhost", None],
    ),
    (OPEN, ["anything.example", None], []),
    (MIXED, ["proxy.example", "localhost:3000"], ["evil.example"]),
    (ANY, ["evil.example"], []),
]
"""Policies with the hosts that they accept and those that they refuse."""


@pytest.mark.parametrize(("policy", "let_in", "refused"), HOSTS)
def test_hosts_are_checked_by_policy(policy: HostPolicy, let_in: list[str | None], refused: list[str | None]) -> None:
    for host in [*let_in, *refused]:
        refusal = policy.check_host(Headers({} if host is None else {"host": host}))
        assert (refusal is None) is (host in let_in), host
        assert refusal is None or (refusal.status, refusal.failure.id) == (403, None)


def test_refusals_name_the_option_that_allows_the_host_or_origin() -> None:
    host, origin = LOCAL.check_host(Headers({"host": "a.example"})), LOCAL.check_origin(Headers({"origin": "null"}))
    assert host is not None
    assert origin is not None
    assert (host.failure.message[-14:], origin.failure.message[-16:]) == ("--allowed-host", "--allowed-origin")


ORIGINS: list[tuple[HostPolicy, list[str | None], list[str | None]]] = [
    (
        LOCAL,
        [
            *(None, "http://localhost", "http://localhost:6274", "https://127.0.0.1:1", "http://[::1]:1"),
            "HTTP://LOCALHOST:1",
        ],
        [
            *("null", "", "localhost", "file://localhost", "http://evil.example", "http://localhost.evil.example"),
            *("http://localhost:80@evil.example", "http://localhost/path", "http://localhost, http://evil.example"),
        ],
    ),
    (
        LISTED,
        ["https://app.example", "https://app.example:443", "HTTPS://App.Example", "http://[2001:db8::1]"],
        ["http://app.example", "https://app.example:8443", "http://localhost", "null"],
    ),
    (OPEN, [None], ["https://anything.example"]),
    (MIXED, ["https://app.example", "http://localhost:1"], []),
    (ANY, ["https://evil.example"], ["null"]),
]


@pytest.mark.parametrize(("policy", "let_in", "refused"), ORIGINS)
def test_origins_are_checked_by_policy(
    policy: HostPolicy, let_in: list[str | None], refused: list[str | None]
) -> None:
    for origin in [*let_in, *refused]:
        refusal = policy.check_origin(Headers({} if origin is None else {"origin": origin}))
        assert (refusal is None) is (origin in let_in), origin
        assert refusal is None or refusal.status == 403
        assert refusal is None or "evil" not in refusal.failure.message


@pytest.mark.parametrize(("hosts", "origins"), [(["a b"], []), ([""], []), ([], ["app.example"]), ([], ["null"])])
def test_invalid_allowed_hosts_and_origins_raise_an_error(hosts: list[str], origins: list[str]) -> None:
    with pytest.raises(ValueError, match="not a host or an origin"):
        HostPolicy("127.0.0.1", hosts, origins)
