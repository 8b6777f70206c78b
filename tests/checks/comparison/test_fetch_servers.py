"""Known faults of the official fetch server, tried on it and on ours.

Ours has to pass; the others are tried by `make compare`, which prints what each does today.
"""

import itertools
import json
import os
import re
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from tests.checks.benchmarks import fetch_peers, fetch_samples
from tests.checks.benchmarks.fetch_samples import PARAGRAPHS, TITLE, article
from tests.checks.benchmarks.fetch_site import Request, Site, reply
from tests.checks.benchmarks.machine import Watch, family
from tests.checks.benchmarks.peers import ROOT
from tests.wire import Json, Wire

KIND = "fetch"
PATIENCE = 8.0
"""Seconds in which every call here has to be answered."""
MIB_ALLOWED = 100
"""How much more memory a single page may take."""
SECRET = "swordfish"
WORDS = "the harbour of Ostenford was dug by hand"

LOOPBACK = (
    *("127.0.0.1", "127.1", "127.0.1", "127.0.0.2", "2130706433", "0x7f000001", "0x7f.1", "0x7F.0.0.0x1"),
    *("0177.0.0.1", "017700000001", "127.0.0.01", "127.0.0.1.", "0.0.0.0", "0", "%31%32%37.0.0.1"),
    *("127。0。0。1", "①②⑦.⓪.⓪.①", "１２７.０.０.１", "localhost", "LOCALHOST", "localhost.", "localhoſt"),
    *("[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]"),
    *("[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25lo]"),
)
METADATA = ("169.254.169.254", "100.100.100.200", "[fd00:ec2::254]", "[::ffff:a9fe:a9fe]", "metadata.google.internal")

# A resolver with two names. One turns private at every second look: a name server may answer as it likes. The public
# address is of a range that is not given out, so that nobody is there.
_NAMES = """
import itertools, socket
_resolve, _public = socket.getaddrinfo, "3000::1"
_names = {"public.example": itertools.repeat(_public), "rebinding.example": itertools.cycle([_public, "127.0.0.1"])}
def getaddrinfo(host, *more, **named):
    name = host.decode() if isinstance(host, bytes) else host
    return _resolve(next(_names[name]) if name in _names else host, *more, **named)
socket.getaddrinfo = getaddrinfo
"""


class Told(NamedTuple):
    """What a server said of a page."""

    failed: bool
    text: str
    parts: list[Json]


class Server:
    """One of the servers, with the site that it may ask."""

    def __init__(self, wire: Wire, site: Site) -> None:
        self.wire = wire
        self.site = site

    def serve(self, target: str, page: bytes | str | Callable) -> str:
        """Puts a page on the site; its URL. A text is the HTML of an article's end."""
        self.site.pages[target] = reply(article(page)) if isinstance(page, str) else page
        return self.site.url(target)

    async def fetch(self, url: str, **arguments: object) -> Told:
        """The tool's answer."""
        params = {"name": "fetch", "arguments": {"url": url, **arguments}}
        return _told(await self.wire.request("tools/call", params, timeout=PATIENCE))

    async def read(self, page: bytes | str | Callable, **arguments: object) -> Told:
        """What is told of a page that holds this."""
        return await self.fetch(self.serve("/page", page), **{"max_length": 20_000, **arguments})

    async def begin(self, url: str) -> int:
        """Asks for a page, and waits until the site is asked; the id."""
        params = {"name": "fetch", "arguments": {"url": url}}
        await self.wire.send({"jsonrpc": "2.0", "id": 1_000, "method": "tools/call", "params": params})
        with anyio.fail_after(PATIENCE):
            while self.site.asked[-1:] == [] or self.site.url(self.site.asked[-1].target) != url:
                await anyio.sleep(0.01)
        return 1_000

    async def cancel(self, id: int) -> None:
        """Says that the answer is not needed any more."""
        await self.wire.notify("notifications/cancelled", {"requestId": id})

    async def lives(self) -> bool:
        """Whether an ordinary page is read."""
        told = await self.fetch(self.serve("/ordinary", "<p>It lives.</p>"), max_length=20_000)
        return "It lives" in told.text


def _told(answer: Json) -> Told:
    if "error" in answer:
        return Told(True, json.dumps(answer["error"]), [])
    result = answer["result"]
    text = "".join(part.get("text", "") for part in result["content"])
    return Told(bool(result.get("isError")), text, result["content"])


async def h1_no_spelling_of_loopback_is_reached(server: Server) -> bool:
    url = server.serve("/", "")
    told = [await server.fetch(url.replace("127.0.0.1", host)) for host in LOOPBACK]
    return all(one.failed for one in told) and not server.site.asked


async def h2_a_name_that_turns_private_is_not_reached(server: Server) -> bool:
    told = await server.fetch(server.site.url("/", host="rebinding.example"))
    return told.failed and not server.site.asked


async def h3_a_redirect_to_loopback_is_refused(server: Server) -> bool:
    """The site serves as the proxy through which a public page is asked for."""
    inside = server.serve("/inside", f"<p>{SECRET}</p>")
    server.site.pages["http://public.example/page"] = reply("", status="302 Found", location=inside)
    told = await server.fetch("http://public.example/page")
    asked_through = server.site.count("http://public.example/page") == 1
    return told.failed and asked_through and not server.site.count("/inside") and not server.site.count(inside)


async def h3_a_redirect_to_a_file_is_refused(server: Server) -> bool:
    told = await server.read(reply("", status="302 Found", location="file:///etc/passwd"))
    return told.failed and "root:" not in told.text and await server.lives()


async def h3_a_circle_of_redirects_ends(server: Server) -> bool:
    told = await server.read(reply("", status="302 Found", location="/page"))
    return told.failed and server.site.count("/page") <= 30


async def h3_one_private_host_can_be_opened_and_no_other(server: Server) -> bool:
    async with Site({}, host="127.0.0.2") as other:
        told = await server.read(reply("", status="302 Found", location=other.url("/")))
        return told.failed and not other.asked and await server.lives()


async def h3_where_a_redirect_led_is_told(server: Server) -> bool:
    new = server.serve("/new-place", "")
    return new in (await server.read(reply("", status="301 Moved Permanently", location="/new-place"))).text


async def h4_services_of_clouds_are_not_asked(server: Server) -> bool:
    return all([(await server.fetch(f"http://{host}/latest/meta-data/")).failed for host in METADATA])


async def h5_a_gzip_bomb_takes_no_memory(server: Server) -> bool:
    """320 MiB out of 320 KB."""
    await server.lives()
    with Watch(server.wire.pid) as watch:
        told = await server.read(fetch_samples.bomb(20))
    return told.failed and watch.growth < MIB_ALLOWED and await server.lives()


async def h5_an_endless_body_is_given_up(server: Server) -> bool:
    await server.read(fetch_samples.endless)
    return await server.lives()


async def h5_a_byte_at_a_time_is_given_up(server: Server) -> bool:
    return (await server.read(fetch_samples.drip)).failed and await server.lives()


async def h5_endless_headers_are_given_up(server: Server) -> bool:
    return (await server.read(_endless_headers)).failed and await server.lives()


async def _endless_headers(_request: Request) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in itertools.count():
        yield f"X-{number}: {'x' * 1_000}\r\n".encode()


async def h5_a_body_that_ends_early_does_not_look_complete(server: Server) -> bool:
    whole = reply(article())
    answer = await server.read(whole[: len(whole) // 2])
    return answer.failed or "ended too early" in answer.text


async def h6_nested_elements_are_survived(server: Server) -> bool:
    await server.read(fetch_samples.nested())
    return await server.lives()


async def h6_a_hundred_thousand_elements_are_survived(server: Server) -> bool:
    await server.read("<i>x</i>" * 100_000)
    return await server.lives()


async def h7_the_charset_stands_in_the_page(server: Server) -> bool:
    page = article("<p>東京の港は冬に凍らない。</p>", head='<meta charset="shift_jis">').encode("shift_jis")
    return "東京の港" in (await server.read(reply(page, "text/html"))).text


async def h7_utf_16_is_told_by_its_mark(server: Server) -> bool:
    page = article("<p>Übergröße</p>").encode("utf-16")
    return "Übergröße" in (await server.read(reply(page, "text/html"))).text


async def h7_a_mark_counts_more_than_the_header(server: Server) -> bool:
    page = article("<p>Übergröße</p>").encode("utf-8-sig")
    return "Übergröße" in (await server.read(reply(page, "text/html; charset=iso-8859-1"))).text


async def h7_a_charset_that_nobody_names_is_found(server: Server) -> bool:
    line = "Гавань Остенфорда была вырыта вручную зимой, когда поля лежали под снегом и никто не работал. "
    return "Гавань" in (await server.read(reply((line * 20).encode("cp1251"), "text/plain"))).text


async def h8_a_pdf_is_read(server: Server) -> bool:
    told = await server.read(reply(fetch_samples.pdf("Barrels of Ostenford"), "application/pdf"))
    return "Barrels of Ostenford" in told.text and "endobj" not in told.text


async def h8_a_picture_is_a_picture(server: Server) -> bool:
    told = await server.read(reply(fetch_samples.png(), "image/png"))
    return any(part["type"] == "image" and part["mimeType"] == "image/png" for part in told.parts)


async def h8_what_is_no_text_is_not_shown_as_text(server: Server) -> bool:
    data = bytes(range(256)) * 40
    told = await server.read(reply(data, "application/octet-stream"))
    return len(told.text) < 2_000 and "\x01" not in told.text


async def h9_what_robots_forbids_is_not_asked_for(server: Server) -> bool:
    server.site.pages["/robots.txt"] = reply("User-agent: *\nDisallow: /*.pdf$\n", "text/plain")
    server.serve("/a.pdf", "")
    return (await server.fetch(server.site.url("/a.pdf"))).failed and not server.site.count("/a.pdf")


async def h9_robots_that_fails_forbids_all(server: Server) -> bool:
    server.site.pages["/robots.txt"] = reply("later", status="503 Service Unavailable")
    return (await server.read("")).failed and not server.site.count("/page")


async def h9_robots_that_is_forbidden_forbids_nothing(server: Server) -> bool:
    server.site.pages["/robots.txt"] = reply("no", status="403 Forbidden")
    return WORDS.lower() in (await server.read("")).text.lower()


async def h9_robots_is_asked_for_once(server: Server) -> bool:
    return await server.lives() and not (await server.read("")).failed and server.site.count("/robots.txt") == 1


async def h10_what_a_missing_page_says_is_told(server: Server) -> bool:
    told = await server.read(reply("<p>It moved to /archive.</p>", status="404 Not Found"))
    return told.failed and "404" in told.text and "It moved to /archive" in told.text


async def h10_when_to_come_again_is_told(server: Server) -> bool:
    told = await server.read(reply("", status="429 Too Many Requests", Retry_After="123"))
    return told.failed and "429" in told.text and "123" in told.text


async def h10_no_content_is_no_riddle(server: Server) -> bool:
    told = await server.read(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    return "<error>" not in told.text


async def h11_credentials_are_not_repeated(server: Server) -> bool:
    url = server.serve("/page", "").replace("http://", f"http://ada:{SECRET}@")
    return SECRET not in (await server.fetch(url)).text


async def h12_what_is_not_displayed_is_left_out(server: Server) -> bool:
    return await _hides(server, f'<p style="display:none">{SECRET}</p>')


async def h12_text_of_no_size_is_left_out(server: Server) -> bool:
    return await _hides(server, f'<p>Barrels<span style="font-size:0"> {SECRET} </span> of wine</p>')


async def h12_text_beside_the_screen_is_left_out(server: Server) -> bool:
    return await _hides(server, f'<p style="position:absolute; left:-9999px">{SECRET}</p>')


async def h12_tag_characters_are_left_out(server: Server) -> bool:
    return await _hides(server, f"<p>Barrels{_tags(SECRET)} of wine.</p>", _tags(SECRET))


async def h12_letters_without_width_are_left_out(server: Server) -> bool:
    return await _hides(server, "<p>Bar\u200brels of\u2060 wine\u200e.</p>", "\u200b", "\u2060")


def _tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(letter)) for letter in text)


async def _hides(server: Server, inside: str, *hidden: str) -> bool:
    told = await server.read(inside)
    return WORDS.lower() in told.text.lower() and not any(one in told.text for one in hidden or (SECRET,))


async def h13_the_second_part_is_of_the_same_page(server: Server) -> bool:
    turns = iter(range(1, 100))
    url = server.serve("/page", lambda _request: reply(article(f"<p>edition {next(turns)} </p>" * 300)))
    first = await server.fetch(url, max_length=3_000)
    second = await server.fetch(url, max_length=3_000, start_index=3_000)
    seen = [set(re.findall(r"edition (\d+)", one.text)) for one in (first, second)]
    return len(seen[0]) == 1 and seen[0] == seen[1]


async def h13_the_second_part_is_not_loaded_again(server: Server) -> bool:
    url = server.serve("/page", "<p>And so on.</p>" * 1_000)
    await server.fetch(url, max_length=3_000)
    second = await server.fetch(url, max_length=3_000, start_index=3_000)
    return "And so on" in second.text and server.site.count("/page") == 1


async def h14_cookies_are_not_kept(server: Server) -> bool:
    await server.read(reply(article(), Set_Cookie=f"session={SECRET}; Path=/"))
    return await server.lives() and not any("cookie" in request.headers for request in server.site.asked)


async def h15_a_certificate_of_nobody_is_refused(server: Server) -> bool:
    return (await server.read("")).failed and not server.site.asked


async def h16_other_pages_are_read_beside_a_poisonous_one(server: Server) -> bool:
    await server.begin(server.serve("/poison", fetch_samples.nested()))
    return await server.lives()


async def h17_cancelling_ends_the_connection(server: Server) -> bool:
    await server.cancel(await server.begin(server.serve("/drip", fetch_samples.drip)))
    with anyio.fail_after(PATIENCE):
        await server.site.left.wait()
    return await server.lives()


async def h17_cancelling_ends_the_reading(server: Server) -> bool:
    await server.cancel(await server.begin(server.serve("/poison", fetch_samples.nested(3_000))))
    return await server.lives()


async def reading_keeps_the_title(server: Server) -> bool:
    return TITLE in (await server.read("")).text


async def reading_gives_the_source_where_it_is_wanted(server: Server) -> bool:
    told = await server.read("<p>And <b>so</b> on.</p>", raw=True)
    return not told.failed and "<p>And <b>so</b> on.</p></article></main></body></html>" in told.text


async def reading_makes_links_whole(server: Server) -> bool:
    told = await server.read(f'{PARAGRAPHS}<p>More stands in <a href="../b?c=d">the book of barrels</a> there.</p>')
    return server.site.url("/b?c=d") in told.text


async def reading_keeps_a_table(server: Server) -> bool:
    rows = "".join(f"<tr><td>{year}</td><td>{year * 3} barrels</td></tr>" for year in range(1843, 1850))
    told = await server.read(f"<table><tr><th>Year</th><th>Cargo</th></tr>{rows}</table>")
    return re.search(r"\| *1844 *\| *5532 barrels *\|", told.text) is not None


async def reading_keeps_code_as_it_is(server: Server) -> bool:
    told = await server.read('<pre><code class="language-python">def f(x):\n    return x &lt; 3\n</code></pre>')
    return "```python\ndef f(x):\n    return x < 3\n```" in told.text


Scenario = Callable[[Server], Awaitable[bool]]

SCENARIOS: dict[Scenario, str] = {
    one: "open" for name, one in list(globals().items()) if re.match(r"h\d+_|reading_", name)
} | {
    h1_no_spelling_of_loopback_is_reached: "strict",
    h2_a_name_that_turns_private_is_not_reached: "strict",
    h3_a_redirect_to_loopback_is_refused: "proxy",
    h4_services_of_clouds_are_not_asked: "strict",
    h5_an_endless_body_is_given_up: "hurried",
    h5_a_byte_at_a_time_is_given_up: "hurried",
    h15_a_certificate_of_nobody_is_refused: "tls",
}
"""Each with the way in which the servers are started: to reach the site or not, and with what limits."""
SERVERS = ("ours", "official")


def _command(name: str, way: str, port: int) -> list[str]:
    proxy = ("--proxy-url", f"http://127.0.0.1:{port}") if way == "proxy" else ()
    reaches_private = way in {"open", "hurried", "tls"}
    if name == "ours":
        hurried = ("--timeout", 3) if way == "hurried" else ()
        opened = ("--allow-private", "127.0.0.1:*") if reaches_private else ("--allow-port", port, "--allow-port", 80)
        return fetch_peers.ours_command(*hurried, *opened, *proxy)
    return fetch_peers.official_command(*(["--allow-private-ips"] if reaches_private else []), *proxy)


def _self_signed(folder: Path) -> ssl.SSLContext:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@asynccontextmanager
async def _started(name: str, way: str, folder: Path) -> AsyncIterator[Server]:
    """One that hangs is killed at the end, with what it has started."""
    # The official server leaves files behind.
    env = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(folder)}
    (folder / "sitecustomize.py").write_text(_NAMES)
    tls = _self_signed(folder) if way == "tls" else None
    async with (
        Site({}, tls=tls) as site,
        Wire(_command(name, way, site.port), env=env, cwd=ROOT, check=False) as wire,
    ):
        try:
            await wire.initialize()
            yield Server(wire, site)
        finally:
            for pid in family(wire.pid)[1:] if name == "official" else ():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
async def test_a_failure_that_was_seen(
    scenario: Scenario, server: str, tmp_path: Path, judge: Callable[[str, str, Awaitable[bool]], Awaitable[None]]
) -> None:
    async def passes() -> bool:
        async with _started(server, SCENARIOS[scenario], tmp_path) as started:
            return await scenario(started)

    await judge(scenario.__name__, server, passes())
