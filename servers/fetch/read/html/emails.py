"""Restores the email addresses that Cloudflare replaces in pages, as its script does in a browser.

Everything with an at sign is taken for an address, such as `react@19` in a command. The address is in an attribute or
in the fragment of a link, in hexadecimal: each byte is combined with the first one by XOR
(https://developers.cloudflare.com/waf/tools/scrape-shield/email-address-obfuscation/).
"""

from lxml.html import HtmlElement

_SIGN = "/cdn-cgi/l/email-protection"
"""The address of the links that replace email addresses."""
_ATTRIBUTE = "data-cfemail"


def restore_emails(root: HtmlElement, source: str) -> None:
    """Restore all email addresses in the text and the links of a page. Most pages have none in their `source`."""
    if _SIGN not in source:
        return
    for element in root.xpath(f"//*[@{_ATTRIBUTE}]"):
        if address := _decode(element.get(_ATTRIBUTE)):
            element[:] = []
            element.tag, element.text = "span", address
    for link in root.xpath(f"//a[contains(@href, '{_SIGN}#')]"):
        if address := _decode(link.get("href").partition("#")[2]):
            link.set("href", f"mailto:{address}")


def _decode(code: str) -> str:
    """Return the address in a code, or "" if it is invalid."""
    try:
        key, *rest = bytes.fromhex(code)
    except ValueError:
        return ""
    return bytes(byte ^ key for byte in rest).decode("utf-8", "replace")
