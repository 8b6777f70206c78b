"""Email addresses that Cloudflare replaces."""

import pytest

from tests.servers.common.html.bodies import markdown


def encode(address: str) -> str:
    return bytes([7, *(byte ^ 7 for byte in address.encode())]).hex()


MARK = "[email&#160;protected]"
LINK = "/cdn-cgi/l/email-protection"


@pytest.mark.parametrize(
    ("html", "written"),
    [
        (f"<a href={LINK} class=__cf_email__ data-cfemail={encode('ann@a.example')}>{MARK}</a>", "ann@a.example"),
        (
            f"<a href='{LINK}#{encode('ann@a.example?subject=x')}'>Write to"
            f" <span data-cfemail={encode('ann@a.example')}>{MARK}</span></a>",
            "[Write to ann@a.example](mailto:ann@a.example?subject=x)",
        ),
        (
            f"<pre>npm i <a href={LINK} data-cfemail={encode('react@19')}>{MARK}</a></pre>",
            "```\nnpm i react@19\n```",
        ),
        (
            f"<a href={LINK} data-cfemail=07z>[email&#160;protected]</a>",
            f"[[email protected]](https://example.com{LINK})",
        ),
    ],
)
def test_a_protected_address_is_restored(html: str, written: str) -> None:
    assert markdown(html).replace("\\", "") == written
