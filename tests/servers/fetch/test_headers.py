"""Headers of requests: the name of the server, and what the operator sets for single hosts."""

import pytest
from pydantic import ValidationError

from servers.fetch.load.headers import HostHeader, headers_for, parse_host_header
from servers.fetch.settings import Settings


@pytest.mark.parametrize(
    ("text", "host", "port", "name", "value"),
    [
        ("example.com=Authorization:Bearer a=b:c", "example.com", 443, "Authorization", "Bearer a=b:c"),
        ("EXAMPLE.com.:8080=X-Key: 1 2 ", "example.com", 8080, "X-Key", "1 2"),
        ("[::1]:81=X-Key:1", "::1", 81, "X-Key", "1"),
    ],
)
def test_a_header_is_read(text: str, host: str, port: int, name: str, value: str) -> None:
    assert parse_host_header(text) == HostHeader(host, port, name, value)


@pytest.mark.parametrize(
    "text",
    [
        "a.com",
        "a.com=secret",
        "=N:secret",
        "a b=N:secret",
        "a.com:0=N:secret",
        "a.com:70000=N:secret",
        "a.com=:secret",
    ]
    + ["a.com=N N:secret", "a.com=N:", "a.com=N:secret\r\nX: 1", "a.com=N:sécret"]
    + [f"a.com={name}:secret" for name in ("Host", "content-length", "Transfer-Encoding", "CONNECTION", "Upgrade")]
    + [f"a.com={name}:secret" for name in ("Accept-Encoding", "Range", "If-None-Match", "TE", "Expect")],
)
def test_what_is_no_header_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_host_header(text)
    assert "secret" not in str(caught.value)
    assert "sécret" not in str(caught.value)


def test_without_a_port_a_header_is_for_https_only() -> None:
    headers = [parse_host_header("a.com=X-Key:1"), parse_host_header("a.com:80=X-Other:2")]
    assert headers_for(headers, "https", "a.com", 443) == {"x-key": "1"}
    assert headers_for(headers, "http", "a.com", 443) == {}
    assert headers_for(headers, "http", "a.com", 80) == {"x-other": "2"}
    assert headers_for(headers, "https", "b.a.com", 443) == {}


def test_the_settings_show_no_value() -> None:
    assert "secret" not in repr(parse_host_header("a.com=X-Key:secret"))
    assert "secret" not in repr(Settings(header=["a.com=X-Key:secret"]))
    with pytest.raises(ValidationError) as caught:
        Settings(header=["a.com=Host:secret"])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("agent", ["", " a", "a\r\nX: 1", "ä"])
def test_a_name_for_oneself_is_one_line_of_ascii(agent: str) -> None:
    with pytest.raises(ValidationError):
        Settings(user_agent=agent)
