"""What an operator may allow and deny."""

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.network.address_policy import Policy, Rules

PUBLIC, PRIVATE, OTHER = "93.184.215.14", "10.1.2.3", "192.168.1.1"


def outcome(rules: Rules, host: str, address: str, port: int = 443) -> str:
    """ "ok", or the code of the refusal."""
    policy = Policy(rules)
    try:
        policy.check_host(host, port)
        policy.check_address(host, address, port)
    except FetchError as error:
        return error.code
    return "ok"


@pytest.mark.parametrize(
    ("host", "address", "port", "expected"),
    [
        ("example.com", PUBLIC, 443, "ok"),
        ("example.com", PUBLIC, 80, "ok"),
        ("example.com", PUBLIC, 22, "blocked_host"),
        ("example.com", PRIVATE, 443, "blocked_address"),
        ("example.com", "no address", 443, "blocked_address"),
        (PRIVATE, PRIVATE, 443, "blocked_address"),
    ],
)
def test_by_itself_only_the_public_web_is_allowed(host: str, address: str, port: int, expected: str) -> None:
    assert outcome(Rules(), host, address, port) == expected


@pytest.mark.parametrize(
    ("entry", "host", "address", "port", "expected"),
    [
        ("intranet.test", "intranet.test", PRIVATE, 443, "ok"),
        ("Intranet.TEST.", "intranet.test", PRIVATE, 443, "ok"),
        ("intranet.test", "intranet.test", PRIVATE, 8080, "blocked_host"),
        ("intranet.test", "sub.intranet.test", PRIVATE, 443, "blocked_address"),
        ("intranet.test", "other.test", PRIVATE, 443, "blocked_address"),
        ("intranet.test:8080", "intranet.test", PRIVATE, 8080, "ok"),
        ("intranet.test:8080", "intranet.test", PRIVATE, 443, "blocked_address"),
        ("intranet.test:8080", "other.test", PUBLIC, 8080, "blocked_host"),
        ("intranet.test:*", "intranet.test", PRIVATE, 22, "ok"),
        ("10.0.0.0/8", "intranet.test", PRIVATE, 443, "ok"),
        ("10.0.0.0/8", "intranet.test", OTHER, 443, "blocked_address"),
        ("10.0.0.0/8", "intranet.test", f"::ffff:{PRIVATE}", 443, "ok"),
        ("10.0.0.0/8", "intranet.test", f"64:ff9b::{PRIVATE}", 443, "blocked_address"),
        ("10.0.0.0/8", "intranet.test", PRIVATE, 8080, "blocked_host"),
        ("10.0.0.0/8:8080", "intranet.test", PRIVATE, 8080, "ok"),
        ("10.0.0.0/8:8080", "example.com", PUBLIC, 8080, "blocked_host"),
        ("10.0.0.0/8:*", "intranet.test", PRIVATE, 1, "ok"),
        (PRIVATE, "intranet.test", PRIVATE, 443, "ok"),
        ("0x0a010203", PRIVATE, PRIVATE, 443, "ok"),
        ("[fd00::1]:8080", "fd00::1", "fd00::1", 8080, "ok"),
        ("[fd00::1]", "fd00::1", "fd00::1", 443, "ok"),
        ("[fd00::/8]:*", "intranet.test", "fd12::1", 9, "ok"),
        ("[::ffff:10.1.2.3]", "intranet.test", PRIVATE, 443, "ok"),
    ],
)
def test_a_private_host_or_network_is_allowed(entry: str, host: str, address: str, port: int, expected: str) -> None:
    assert outcome(Rules(allow_private=[entry]), host, address, port) == expected


def test_an_entry_without_a_port_has_those_that_are_allowed() -> None:
    assert outcome(Rules(allow_private=["intranet.test"], allow_port=[8080]), "intranet.test", PRIVATE, 8080) == "ok"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("example.com", "ok"),
        ("sub.example.com", "ok"),
        ("notexample.com", "blocked_host"),
        ("example.com.test", "blocked_host"),
        ("com", "blocked_host"),
        (PUBLIC, "blocked_host"),
    ],
)
def test_where_some_hosts_are_allowed_no_other_is(host: str, expected: str) -> None:
    assert outcome(Rules(allow_host=["example.com"]), host, PUBLIC) == expected


@pytest.mark.parametrize(
    ("host", "address", "expected"),
    [
        ("example.com", PUBLIC, "blocked_host"),
        ("sub.example.com", PUBLIC, "blocked_host"),
        ("example.org", PUBLIC, "ok"),
        ("example.org", "8.8.8.8", "blocked_host"),
        ("example.org", "64:ff9b::8.8.8.8", "blocked_host"),
        ("8.8.8.8", "8.8.8.8", "blocked_host"),
    ],
)
def test_what_is_denied_stays_denied(host: str, address: str, expected: str) -> None:
    rules = Rules(["example.com:*", "0.0.0.0/0:*"], ["com", "org", "8.8.8.8"], ["Example.com.", "8.8.8.8"])
    assert outcome(rules, host, address) == expected


@pytest.mark.parametrize(
    "entry",
    [
        "", ":80", "*", "*.example.com", "http://example.com", "example.com/path", "user@example.com", "example.com:",
        "example.com:0", "example.com:65536", "example.com:http", "fd00::1", "fd00::/8", "[fd00::1", "[fe80::1%1]",
        "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8:99999", "1.2.3.4.5", "[example.com]", "a..b",
    ],
)  # fmt: skip
def test_an_entry_that_can_t_be_read_is_named(entry: str) -> None:
    with pytest.raises(ValueError) as caught:
        Policy(Rules(allow_private=[entry]))
    assert str(caught.value).startswith(repr(entry))


@pytest.mark.parametrize("host", ["", "*.example.com", "https://example.com", "example.com:80", "10.0.0.0/8", "[::1"])
def test_only_a_host_is_a_host(host: str) -> None:
    for rules in (Rules(allow_host=[host]), Rules(deny_host=[host])):
        with pytest.raises(ValueError, match="is no host"):
            Policy(rules)


def test_a_refusal_says_what_the_operator_could_allow() -> None:
    policy = Policy(Rules(allow_private=["10.0.0.0/8:*"]))
    with pytest.raises(FetchError) as caught:
        policy.check_address("fd00::1", "fd00::1", 443)
    assert caught.value.suggestion == "The operator can allow it with --allow-private [fd00::1]"
    with pytest.raises(FetchError) as caught:
        policy.check_address("example.com", PUBLIC, 8080)
    assert caught.value.suggestion == "The operator can allow it with --allow-port 8080"
    with pytest.raises(FetchError) as caught:
        policy.check_address("127.0.0.2", "127.0.0.2", 8080)
    assert caught.value.suggestion == "The operator can allow it with --allow-private 127.0.0.2:8080"


def test_only_a_name_that_is_allowed_to_be_private_is_named() -> None:
    policy = Policy(Rules(allow_private=["intranet.test:8080", "10.0.0.0/8"], allow_host=["intranet.test"]))
    assert policy.is_named("intranet.test", 8080)
    assert not policy.is_named("intranet.test", 80)
    assert not policy.is_named("10.0.0.1", 80)
