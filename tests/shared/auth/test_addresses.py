"""Where documents may send us, by table."""

import pytest

from shared.auth.addresses import Addresses, ForbiddenAddress, check_scheme

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


@pytest.mark.parametrize(
    ("url", "near", "allowed"),
    [
        ("https://as.example/jwks", None, True),
        ("https://corp.example/jwks", None, True),
        ("http://127.0.0.1:9000/jwks", None, True),
        ("http://[::1]:9000/jwks", None, True),
        ("http://localhost:9000/jwks", None, True),
        ("http://as.example/jwks", None, False),
        ("http://localhost.example/jwks", None, False),
        ("ftp://as.example/jwks", None, False),
        ("file:///etc/passwd", None, False),
        ("https:///jwks", None, False),
        ("https://user:secret@as.example/", None, False),
        ("https://as.example:99999/", None, False),
        ("https://[bad/", None, False),
        ("https://other.example/jwks", "https://as.example", True),
        ("https://as.example:8443/jwks", "https://as.example", True),
        ("https://corp.example/jwks", "https://as.example", False),
        ("https://mixed.example/jwks", "https://as.example", False),
        ("https://10.0.0.1/jwks", "https://as.example", False),
        ("https://127.0.0.1/jwks", "https://as.example", False),
        ("https://[::1]/jwks", "https://as.example", False),
        ("https://[::ffff:10.0.0.1]/jwks", "https://as.example", False),
        ("https://[64:ff9b::a00:1]/jwks", "https://as.example", False),
        ("https://[fd00::1]/jwks", "https://as.example", False),
        ("http://localhost/jwks", "https://as.example", False),
        ("https://cloud.example/jwks", "https://corp.example", False),
        ("https://0.0.0.0/jwks", "https://corp.example", False),
        ("https://hr.corp.example/jwks", "https://corp.example", True),
        ("https://localhost/jwks", "https://corp.example", False),
        ("https://corp.example/jwks", "https://corp.example", True),
        ("https://corp.example/", "http://localhost:3000/mcp", True),
        ("http://127.0.0.1:9000/jwks", "http://localhost:3000/mcp", True),
        ("http://127.0.0.1:9000/jwks", "https://localhost:3000/mcp", False),
        ("https://cloud.example/", "http://localhost:3000/mcp", False),
        ("https://mixed.example/", "https://mixed.example/x", True),
    ],
)
async def test_what_may_be_opened(url: str, near: str | None, allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.auth.addresses.getproxies", dict)
    if allowed:
        assert await Addresses(resolve).find(url, near)
    else:
        with pytest.raises(ForbiddenAddress):
            await Addresses(resolve).find(url, near)


async def test_a_proxy_finds_the_addresses_of_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.auth.addresses.getproxies", lambda: {"https": "http://proxy.example:3128"})
    monkeypatch.setattr("shared.auth.addresses.proxy_bypass", lambda host: False)
    assert await Addresses(resolve).find("https://unknown.example/", "https://as.example") == ()
    with pytest.raises(ForbiddenAddress):
        await Addresses(resolve).find("https://10.0.0.1/", "https://1.1.1.1")


async def test_a_name_without_an_address_is_a_fault_of_the_network() -> None:
    with pytest.raises(OSError, match=r"nowhere\.example has no address"):
        await Addresses(resolve).find("https://nowhere.example/")


def test_a_refusal_has_no_secret_of_the_url() -> None:
    with pytest.raises(ForbiddenAddress) as refused:
        check_scheme("http://user:secret@as.example/?token=secret")
    assert "secret" not in str(refused.value)
