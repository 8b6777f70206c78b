"""The rules that allow and deny addresses, cloud metadata, and the server's own endpoints."""

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.network.address_policy import Policy, Rules
from tests.servers.fetch.reaching import Answers, reaching

PUBLIC, PRIVATE, OTHER = "93.184.215.14", "10.1.2.3", "192.168.1.1"
METADATA = ["169.254.169.254", "169.254.170.2", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "fd20:ce::254"]
EVERYTHING = ["0.0.0.0/0:*", "[::/0]:*", "metadata.test:*"]
SPELLINGS = """
    169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 [::ffff:169.254.169.254]
    [::169.254.169.254] [64:ff9b::a9fe:a9fe] [64:ff9b:1:a9fe:a9:fe00::] [2002:a9fe:a9fe::1]
    [2606:4700::5efe:a9fe:a9fe] [fd00:ec2::254] [FD00:0EC2:0:0::254] 100.100.100.200 168.63.129.16
    [64:ff9b::168.63.129.16]
""".split()  # noqa: SIM905


def outcome(rules: Rules, host: str, address: str, port: int = 443) -> str:
    """Returns "ok", or the code of the refusal."""
    policy = Policy(rules)
    try:
        policy.check_host(host, port)
        policy.check_address(host, address, port)
    except FetchError as error:
        return error.code
    return "ok"


def test_default_rules_allow_only_the_public_web() -> None:
    rows = [
        ("example.com", PUBLIC, 443, "ok"),
        ("example.com", PUBLIC, 80, "ok"),
        ("example.com", PUBLIC, 22, "blocked_host"),
        ("example.com", PRIVATE, 443, "blocked_address"),
        ("example.com", "no address", 443, "blocked_address"),
        (PRIVATE, PRIVATE, 443, "blocked_address"),
    ]
    assert [(*row[:3], outcome(Rules(), *row[:3])) for row in rows] == rows


def test_allow_private_allows_a_host_or_network() -> None:
    rows = [
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
    ]
    assert [(*row[:4], outcome(Rules(allow_private=[row[0]]), *row[1:4])) for row in rows] == rows


def test_allow_private_without_a_port_allows_the_ports_of_allow_port() -> None:
    assert outcome(Rules(allow_private=["intranet.test"], allow_port=[8080]), "intranet.test", PRIVATE, 8080) == "ok"


def test_allow_host_blocks_every_other_host() -> None:
    rows = [
        ("example.com", "ok"),
        ("sub.example.com", "ok"),
        ("notexample.com", "blocked_host"),
        ("example.com.test", "blocked_host"),
        ("com", "blocked_host"),
        (PUBLIC, "blocked_host"),
    ]
    assert [(host, outcome(Rules(allow_host=["example.com"]), host, PUBLIC)) for host, _ in rows] == rows


def test_deny_host_overrides_every_allow_rule() -> None:
    rules = Rules(["example.com:*", "0.0.0.0/0:*"], ["com", "org", "8.8.8.8"], ["Example.com.", "8.8.8.8"])
    rows = [
        ("example.com", PUBLIC, "blocked_host"),
        ("sub.example.com", PUBLIC, "blocked_host"),
        ("example.org", PUBLIC, "ok"),
        ("example.org", "8.8.8.8", "blocked_host"),
        ("example.org", "64:ff9b::8.8.8.8", "blocked_host"),
        ("8.8.8.8", "8.8.8.8", "blocked_host"),
    ]
    assert [(host, address, outcome(rules, host, address)) for host, address, _ in rows] == rows


def test_an_invalid_entry_is_named_in_the_error() -> None:
    entries = [
        "", ":80", "*", "*.example.com", "http://example.com", "example.com/path", "user@example.com", "example.com:",
        "example.com:0", "example.com:65536", "example.com:http", "fd00::1", "fd00::/8", "[fd00::1", "[fe80::1%1]",
        "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8:99999", "1.2.3.4.5", "[example.com]", "a..b",
    ]  # fmt: skip
    for entry in entries:
        with pytest.raises(ValueError) as caught:
            Policy(Rules(allow_private=[entry]))
        assert str(caught.value).startswith(repr(entry))


def test_allow_host_and_deny_host_accept_hosts_only() -> None:
    hosts = ["", "*.example.com", "https://example.com", "example.com:80", "10.0.0.0/8", "[::1"]
    for rules in [Rules(**{option: [host]}) for option in ("allow_host", "deny_host") for host in hosts]:
        with pytest.raises(ValueError, match="is not a host"):
            Policy(rules)


def test_a_refusal_names_the_option_that_allows_the_address() -> None:
    policy = Policy(Rules(allow_private=["10.0.0.0/8:*"]))
    for host, address, port, option in [
        ("fd00::1", "fd00::1", 443, "--allow-private [fd00::1]"),
        ("example.com", PUBLIC, 8080, "--allow-port 8080"),
        ("127.0.0.2", "127.0.0.2", 8080, "--allow-private 127.0.0.2:8080"),
    ]:
        with pytest.raises(FetchError) as caught:
            policy.check_address(host, address, port)
        assert caught.value.suggestion == f"The operator can allow it with {option}"


def test_is_named_holds_for_names_in_allow_private_only() -> None:
    policy = Policy(Rules(allow_private=["intranet.test:8080", "10.0.0.0/8"], allow_host=["intranet.test"]))
    assert policy.may_be_private("intranet.test", 8080)
    assert not policy.may_be_private("intranet.test", 80)
    assert not policy.may_be_private("10.0.0.1", 80)


# Cloud metadata, which hands out credentials


@pytest.mark.parametrize("allowed", [[], EVERYTHING], ids=["nothing", "everything"])
async def test_a_name_never_resolves_to_a_metadata_address(allowed: list[str]) -> None:
    names = Answers(**{f"metadata{at}_test": [address] for at, address in enumerate(METADATA)})
    rules = [*allowed, *(f"metadata{at}.test:*" for at in range(len(METADATA)) if allowed)]
    async with reaching(names, allow_private=rules) as web:
        refused = [await web.refused(f"http://metadata{at}.test/latest/") for at in range(len(METADATA))]
    assert {one.code for one in refused} == {"blocked_address"}


async def test_every_spelling_of_the_metadata_address_is_blocked() -> None:
    async with reaching(allow_private=EVERYTHING) as web:
        refused = {host: (await web.refused(f"http://{host}/latest/")).code for host in SPELLINGS}
        error = await web.refused("http://169.254.169.254/latest/meta-data/")
    assert refused == dict.fromkeys(SPELLINGS, "blocked_address")
    assert (
        str(error) == "169.254.169.254 is where cloud providers hand out credentials"
    )  # without the option that allows it


@pytest.mark.parametrize("address", METADATA)
def test_allow_private_may_name_a_metadata_address(address: str) -> None:
    policy = Policy(Rules(allow_private=[f"[{address}]" if ":" in address else address]))
    policy.check_address(address, address, 80)
    for other in {*METADATA} - {address}:
        with pytest.raises(FetchError):
            policy.check_address(other, other, 80)


# The server's own endpoints


def test_another_port_of_this_machine_is_not_blocked_as_the_server() -> None:
    policy = Policy(Rules(allow_private=["0.0.0.0/0:*"]), lambda: [("127.0.0.1", 8000)])
    policy.check_address("127.0.0.1", "127.0.0.1", 8001)


@pytest.mark.parametrize("bound", ["192.0.2.7", "2001:db8::7"])
def test_the_bound_address_is_blocked_as_the_server(bound: str) -> None:
    policy = Policy(Rules(allow_private=["0.0.0.0/0:*", "[::/0]:*"]), lambda: [(bound, 8000)])
    with pytest.raises(FetchError, match="is this server, which never"):
        policy.check_address("own.test", bound, 8000)
    policy.check_address("other.test", "192.0.2.8", 8000)
