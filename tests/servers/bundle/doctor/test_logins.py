"""Findings about a URL that requires a login."""

from typing import Any

from servers.bundle.doctor.findings import Severity
from servers.bundle.doctor.logins import check_logins
from shared.protocol.http.protected import WELL_KNOWN
from tests.shared.auth.issuing import issuing
from tests.shared.auth.sites import as_json

NOBODY = "http://127.0.0.1:1"


TOLD = [
    ("{url}/mcp", "{url}", Severity.OK, "requires a login at {url}, which is available"),
    ("{url}", "{url}", Severity.OK, "requires a login at {url}, which is available"),
    ("http://127.0.0.1/other", "{url}", Severity.FAULT, "belongs to another resource"),
    ("{url}/mcp", NOBODY, Severity.FAULT, f"requires a login at {NOBODY}, but 127.0.0.1 can't be reached"),
    ("{url}/mcp", "{url}/other", Severity.FAULT, "which returned no metadata at its well-known URLs"),
]


async def test_a_url_that_needs_a_login_is_found() -> None:
    async with issuing() as site:
        # A server without login metadata gives no finding.
        assert await check_logins("here", "there", f"{site.url}/mcp") is None
        site.put(f"{WELL_KNOWN}/mcp", as_json({"resource": f"{site.url}/mcp"}))
        assert await check_logins("here", "there", f"{site.url}/mcp") is None
        for resource, issuer, severity, what in TOLD:
            document: dict[str, Any] = {"resource": resource.format(url=site.url)}
            document["authorization_servers"] = [issuer.format(url=site.url)]
            site.put(f"{WELL_KNOWN}/mcp", as_json(document))
            found = await check_logins("here", "there", f"{site.url}/mcp")
            assert found is not None
            assert found.severity is severity
            assert what.format(url=site.url) in found.what
            assert bool(found.fix) == (severity is not Severity.OK)
