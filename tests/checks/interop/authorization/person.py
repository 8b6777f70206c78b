"""What the user does to whom a login is shown. Runs in the environment of a peer."""

from urllib.parse import parse_qsl, urlsplit

import httpx2

REDIRECT = "http://localhost:8799/callback"
"""Nobody listens there: what the user brings back is read from the address."""


class Unwilling(Exception):
    """The user does not log in."""


class Person:
    """Logs in as often as asked to, unless unwilling."""

    def __init__(self, willing: bool = True) -> None:
        self.asked = 0
        self._willing = willing

    async def open(self, url: str) -> dict[str, str]:
        """Follows a login from its first page to the redirect; the parameters that it brings back."""
        self.asked += 1
        if not self._willing:
            raise Unwilling("nobody is there")
        async with httpx2.AsyncClient(trust_env=True) as browser:
            while True:
                answer = await browser.get(url)
                if "location" not in answer.headers:
                    raise AssertionError(f"{answer.status_code} at {url}: {answer.text[-500:]}")
                url = str(answer.url.join(answer.headers["location"]))
                if urlsplit(url).path.endswith("/callback"):
                    return dict(parse_qsl(urlsplit(url).query))
