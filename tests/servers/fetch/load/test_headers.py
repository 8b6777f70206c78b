"""Request headers: those that the operator sets for a host, and the product token of the user agent."""

import pytest

from servers.fetch.load.headers import HostHeader, headers_for, make_user_agent, parse_host_header, product_token


def test_a_host_header_is_parsed() -> None:
    rows = {
        "example.com=Authorization:Bearer a=b:c": ("example.com", 443, "Authorization", "Bearer a=b:c"),
        "EXAMPLE.com.:8080=X-Key: 1 2 ": ("example.com", 8080, "X-Key", "1 2"),
        "[::1]:81=X-Key:1": ("::1", 81, "X-Key", "1"),
    }
    assert {text: parse_host_header(text) for text in rows} == {text: HostHeader(*row) for text, row in rows.items()}


def test_an_invalid_host_header_is_refused_without_its_value() -> None:
    names = "Host content-length Transfer-Encoding CONNECTION Upgrade Accept-Encoding Range If-None-Match TE Expect"
    texts = ["a.com", "a.com=secret", "=N:secret", "a b=N:secret", "a.com:0=N:secret", "a.com:70000=N:secret"]
    texts += ["a.com=:secret", "a.com=N N:secret", "a.com=N:", "a.com=N:secret\r\nX: 1", "a.com=N:sécret"]
    for text in [*texts, *(f"a.com={name}:secret" for name in names.split())]:
        with pytest.raises(ValueError) as caught:
            parse_host_header(text)
        assert "secret" not in str(caught.value)
        assert "sécret" not in str(caught.value)


def test_a_header_without_a_port_is_sent_over_https_only() -> None:
    headers = [parse_host_header("a.com=X-Key:1"), parse_host_header("a.com:80=X-Other:2")]
    assert headers_for(headers, "https", "a.com", 443) == {"x-key": "1"}
    assert headers_for(headers, "http", "a.com", 443) == {}
    assert headers_for(headers, "http", "a.com", 80) == {"x-other": "2"}
    assert headers_for(headers, "https", "b.a.com", 443) == {}


@pytest.mark.parametrize(
    ("agent", "token"), [(make_user_agent("1.0"), "mcp-bundle-fetch"), ("Me/2", "me"), ("1", "")]
)
def test_the_product_token_is_the_name_before_the_version(agent: str, token: str) -> None:
    assert product_token(agent) == token
