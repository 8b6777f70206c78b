"""Allowed and forbidden addresses in metadata, by table."""

import os

import pytest

from shared.auth.addresses import AddressFinder, ForbiddenAddress, parse_allowed_url

NAMES = {
    "as.example": ["1.1.1.1", "2606:4700::1111"],
    "other.example": ["8.8.8.8"],
    "corp.example": ["10.1.2.3"],
    "hr.corp.example": ["192.168.1.1"],
    "mixed.example": ["8.8.8.8", "127.0.0.1"],
    "cloud.example": ["169.254.169.254"],
    "localhost": ["127.0.0.1"],
    "nowhere.example": [],
}


async def resolve(host: str, port: int) -> list[str]:
    return NAMES[host]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


ALLOWED: dict[str | None, list[str]] = {
    None: [
        *("https://as.example/jwks", "https://corp.example/jwks", "http://127.0.0.1:9000/jwks"),
        *("http://[::1]:9000/jwks", "http://localhost:9000/jwks"),
    ],
    "https://as.example": ["https://other.example/jwks", "https://as.example:8443/jwks"],
    "https://corp.example": ["https://hr.corp.example/jwks", "https://corp.example/jwks"],
    "http://localhost:3000/mcp": ["https://corp.example/", "http://127.0.0.1:9000/jwks"],
    "https://mixed.example/x": ["https://mixed.example/"],
}
"""URLs that may be opened, by the URL of the document that names them."""
FORBIDDEN: dict[str | None, list[str]] = {
    None: [
        *("http://as.example/jwks", "http://localhost.example/jwks", "ftp://as.example/jwks", "file:///etc/passwd"),
        *("https:///jwks", "https://user:secret@as.example/", "https://as.example:99999/", "https://[bad/"),
    ],
    "https://as.example": [
        *("https://corp.example/jwks", "https://mixed.example/jwks", "https://10.0.0.1/jwks"),
        *("https://127.0.0.1/jwks", "https://[::1]/jwks", "https://[::ffff:10.0.0.1]/jwks"),
        *("https://[64:ff9b::a00:1]/jwks", "https://[fd00::1]/jwks", "http://localhost/jwks"),
    ],
    "https://corp.example": ["https://cloud.example/jwks", "https://0.0.0.0/jwks", "https://localhost/jwks"],
    "https://localhost:3000/mcp": ["http://127.0.0.1:9000/jwks"],
    "http://localhost:3000/mcp": ["https://cloud.example/"],
}


async def test_addresses_are_allowed_or_forbidden_by_their_referrer() -> None:
    addresses = AddressFinder(resolve)
    for near, urls in ALLOWED.items():
        for url in urls:
            assert await addresses.find(url, near), (url, near)
    for near, urls in FORBIDDEN.items():
        for url in urls:
            with pytest.raises(ForbiddenAddress):
                await addresses.find(url, near)


async def test_with_a_proxy_names_are_not_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert await AddressFinder(resolve).find("https://unknown.example/", "https://as.example") == ()
    with pytest.raises(ForbiddenAddress):
        await AddressFinder(resolve).find("https://10.0.0.1/", "https://1.1.1.1")


async def test_a_name_without_an_address_raises_os_error() -> None:
    with pytest.raises(OSError, match=r"nowhere\.example has no address"):
        await AddressFinder(resolve).find("https://nowhere.example/")


def test_a_refusal_shows_no_secret_of_the_url() -> None:
    with pytest.raises(ForbiddenAddress) as refused:
        parse_allowed_url("http://user:secret@as.example/?token=secret")
    assert "secret" not in str(refused.value)
