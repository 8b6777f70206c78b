"""H1: this machine, however its address is spelled."""

import socket

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.connecting import CheckedBackend, SystemResolver
from tests.servers.fetch.reaching import Answers, Recorder, listening, reaching


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


IPV6 = has_ipv6()
SPELLINGS = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0X7F.0.0.1",
    "0x7f.1",
    "017700000001",
    "0177.0.0.01",
    "0177.0x0.0.1",
    "000000177.0.0.1",
    "0",
    "0x",
    "0.0.0.0",
    "0.1.2.3",
    "１２７.０.０.１",
    "127。0。0。1",
    "127．0．0．1",
    "①②⑦.0.0.①",
    "%31%32%37.0.0.1",
    "%EF%BC%91%EF%BC%92%EF%BC%97.1",
    "127\u200b.0.0.1",
    "127.0.0.1\u00ad",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:7F00:0001]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::127.0.0.1]",
    "[64:ff9b:1:7f00:0:100::]",
    "[2002:7f00:1::]",
    "[2002:7f00:0001::1]",
    "[2001:0:7f00:1::1]",
    "[2001:0:5db8:d822:0:0:80ff:fffe]",
    "[2606:4700::5efe:127.0.0.1]",
    "[2606:4700::200:5efe:127.0.0.1]",
    "[fe80::1]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "ｌｏｃａｌｈｏｓｔ",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "lo\u00adcal\u200bhost",
    "%6c%6f%63%61%6c%68%6f%73%74",
    "localtest.me",
    "sub.localtest.me",
    "mapped.localtest.me",
    "zone.localtest.me",
    "mixed.localtest.me",
]
NAMES = Answers(
    localhost=["127.0.0.1", "::1"],
    localtest_me=["127.0.0.1"],
    sub_localtest_me=["::1"],
    mapped_localtest_me=["::ffff:127.0.0.1"],
    zone_localtest_me=["fe80::1%lo"],
    mixed_localtest_me=["93.184.215.14", "127.0.0.1"],
)
NOT_URLS = [
    "[::1%lo]",
    "[::1%25lo]",
    "[fe80::1%251]",
    "[::1",
    "::1",
    "[127.0.0.1]",
    "[::ffff:127.1]",
    "[v1.7f]",
    "127.0.0.1\\",
    "127.0.0.1\\@example.com",
    "example.com\\.127.0.0.1",
    "example.com@127.0.0.1",
    "example.com:80@127.0.0.1",
    "example.com%40127.0.0.1",
    "127.0.0.1%00.example.com",
    "127.0.0.1%2f.example.com",
    "127.0.0.1%09",
    "127.0.0.256",
    "127.0.0.0.1",
    "256.1",
    "4294967296",
    "example.1",
    "example.0x7f",
    "1.2.3.08",
    "",
    ".",
    "..",
    "127..1",
]


@pytest.mark.parametrize("host", SPELLINGS)
async def test_h1_no_spelling_of_this_machine_is_reached(host: str) -> None:
    async with listening(None) as site, reaching(NAMES, allow_port=[site.port]) as web:
        error = await web.refused(f"http://{host}:{site.port}/")
        assert error.code == "blocked_address"
        assert await site.count("::1" if ":" in host and IPV6 else "127.0.0.1") == 0


@pytest.mark.parametrize("host", NOT_URLS)
async def test_h1_what_browsers_and_programs_read_differently_is_no_url(host: str) -> None:
    async with reaching(NAMES) as web:
        assert (await web.refused(f"http://{host}/")).code == "bad_url"


@pytest.mark.parametrize("host", [*SPELLINGS, *NOT_URLS])
async def test_h1_a_host_that_nobody_has_read_before_is_not_reached_either(host: str) -> None:
    recorder = Recorder()
    backend = CheckedBackend(Policy(Rules()), NAMES, recorder)
    for written in (host, host.strip("[]")):
        with pytest.raises(FetchError):
            await backend.connect_tcp(written, 80)
    assert recorder.reached == []


async def test_h1_the_system_says_that_localhost_is_this_machine() -> None:
    async with listening() as site, reaching(SystemResolver(), allow_port=[site.port]) as web:
        assert (await web.refused(f"http://localhost:{site.port}/")).code == "blocked_address"
        assert await site.count() == 0


async def test_h1_the_same_way_reaches_it_where_it_is_allowed() -> None:
    async with listening() as site, reaching(SystemResolver(), allow_private=["localhost:*"]) as web:
        assert await web.get(f"http://localhost:{site.port}/") == "hello"


async def test_h1_a_refusal_does_not_tell_where_a_name_leads() -> None:
    async with reaching(Answers(intranet_example=["10.1.2.3"])) as web:
        error = await web.refused("http://intranet.example/")
    assert str(error) == (
        "intranet.example is not on the public internet. "
        "The operator can allow it with --allow-private intranet.example"
    )
