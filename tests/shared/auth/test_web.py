"""Requests to authorization servers, over sockets."""

import gzip
import ssl
from pathlib import Path

import pytest

from shared.auth.addresses import ForbiddenAddress
from shared.auth.web import MAX_ANSWER_BYTES, Unreachable, Web, WebError
from tests.servers.fetch.authority import authority, certificate
from tests.shared.auth.sites import Answer, Received, Silence, as_json, serving


async def echo(received: Received) -> Answer:
    return as_json(
        {"method": received.method, "path": received.path, "form": received.form, "headers": received.headers},
        x_one="1",
    )


async def test_get_json_returns_document_status_and_headers() -> None:
    async with serving(echo) as site:
        answer = await Web().get_json(f"{site.url}/some?where")
    assert (answer.status, answer.headers["x-one"], answer.document["path"]) == (200, "1", "/some?where")
    assert answer.document["headers"]["host"] == f"127.0.0.1:{site.port}"


async def test_a_form_repeats_a_field_with_several_values() -> None:
    async with serving(echo) as site:
        fields = {"resource": ["a", "b"], "scope": "x y"}
        answer = await Web().post_form(f"{site.url}/token", fields, headers={"authorization": "Basic x"})
    assert answer.document["form"] == {"resource": ["a", "b"], "scope": ["x y"]}
    assert answer.document["headers"]["authorization"] == "Basic x"


async def test_a_document_is_posted_as_json() -> None:
    async with serving(echo) as site:
        await Web().post_json(f"{site.url}/register", {"a": 1})
    assert (site.received[0].body, site.received[0].headers["content-type"]) == (b'{"a":1}', "application/json")


async def test_an_invalid_url_is_refused() -> None:
    for url in ("https://[", "https://as.example/\x01", "::::", "https://xn--a.-/", "https://a/\ud800"):
        with pytest.raises(WebError):
            await Web().get_json(url)


async def test_a_lone_surrogate_is_refused() -> None:
    async with serving(echo) as site:
        with pytest.raises(WebError, match="characters that can't be sent"):
            await Web().post_form(site.url, {"code": "\ud800"})
        with pytest.raises(WebError, match="characters that can't be sent"):
            await Web().post_json(site.url, {"scope": "\ud800"})


async def test_a_redirect_is_returned_and_not_followed() -> None:
    async def redirect(received: Received) -> Answer:
        return Answer(302, b"", {"location": "/elsewhere"})

    async with serving(redirect) as site:
        answer = await Web().get_json(f"{site.url}/a")
    assert (answer.status, answer.document, len(site.received)) == (302, None, 1)


@pytest.mark.parametrize("body", [b"no json", b"[" * 100_000, b"\xff", b""], ids=["text", "nested", "bytes", "empty"])
async def test_an_answer_that_is_not_json_has_no_document(body: bytes) -> None:
    async def answer(received: Received) -> Answer:
        return Answer(200, body)

    async with serving(answer) as site:
        assert (await Web().get_json(site.url)).document is None


async def test_a_too_large_answer_is_refused() -> None:
    async def huge(received: Received) -> Answer:
        return Answer(200, b" " * (MAX_ANSWER_BYTES + 1))

    async with serving(huge) as site:
        with pytest.raises(WebError, match="more than"):
            await Web().get_json(site.url)


async def test_a_compressed_answer_is_refused() -> None:
    async def bomb(received: Received) -> Answer:
        return Answer(200, gzip.compress(b"{}"), {"content-encoding": "gzip"})

    async with serving(bomb) as site:
        with pytest.raises(WebError, match="compressed"):
            await Web().get_json(site.url)


async def test_a_slow_server_is_unreachable() -> None:
    async with serving(Silence()) as site:
        with pytest.raises(Unreachable, match="TimeoutError"):
            await Web(timeout=0.05).get_json(site.url)


async def test_a_closed_port_is_unreachable() -> None:
    async with serving(echo) as site:
        pass
    with pytest.raises(Unreachable):
        await Web().post_form(site.url, {"client_secret": "secret"})


async def test_only_trusted_certificates_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = authority()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate(issuer, "localhost").write(tmp_path / "own"))
    async with serving(echo, tls) as site:
        url = f"https://localhost:{site.port}/"
        with pytest.raises(Unreachable):
            await Web().get_json(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(issuer.write_public(tmp_path / "trusted")))
        assert (await Web().get_json(url)).status == 200
    assert len(site.received) == 1


async def test_an_unreachable_address_is_followed_by_the_next() -> None:
    async def both(host: str, port: int) -> list[str]:
        return ["127.9.9.9", "127.0.0.1"]

    async with serving(echo) as site:
        answer = await Web(resolve=both).get_json(f"http://localhost:{site.port}/")
    assert answer.document["headers"]["host"] == f"localhost:{site.port}"


async def test_a_forbidden_address_gets_no_request() -> None:
    async with serving(echo) as site:
        with pytest.raises(ForbiddenAddress):
            await Web().get_json(site.url, referrer="https://1.1.1.1/")
    assert not site.received


async def test_no_proxy_of_the_environment_bypasses_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "localhost")
    async with serving(echo) as site:
        assert (await Web().get_json(f"http://localhost:{site.port}/")).status == 200


async def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with serving(echo) as site:
        monkeypatch.setenv("HTTP_PROXY", site.url)
        await Web().get_json("http://issuer.localhost:9/jwks")
    assert site.received[0].path == "http://issuer.localhost:9/jwks"
