"""What `doctor` says of a URL that wants a login."""

from typing import Any

import pytest

from servers.bundle.doctor.findings import Severity
from servers.bundle.doctor.logins import check_logins
from shared.protocol.http.protected import WELL_KNOWN
from tests.shared.auth.issuing import issuing
from tests.shared.auth.sites import said

NOBODY = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("resource", "issuer", "severity", "what"),
    [
        ("{url}/mcp", "{url}", Severity.OK, "wants a login at {url}, which is there"),
        ("{url}", "{url}", Severity.OK, "wants a login at {url}, which is there"),
        ("http://127.0.0.1/other", "{url}", Severity.FAULT, "is of another resource"),
        ("{url}/mcp", NOBODY, Severity.FAULT, f"wants a login at {NOBODY}, but 127.0.0.1 can't be reached"),
        ("{url}/mcp", "{url}/other", Severity.FAULT, "which has no metadata at its well-known URLs"),
    ],
)
async def test_where_to_log_in(resource: str, issuer: str, severity: Severity, what: str) -> None:
    async with issuing() as site:
        document: dict[str, Any] = {"resource": resource.format(url=site.url)}
        document["authorization_servers"] = [issuer.format(url=site.url)]
        site.put(f"{WELL_KNOWN}/mcp", said(document))
        found = await check_logins("here", "there", f"{site.url}/mcp")
    assert found is not None
    assert found.severity is severity
    assert what.format(url=site.url) in found.what
    assert bool(found.fix) == (severity is not Severity.OK)


async def test_who_says_nothing_of_logins_is_no_matter() -> None:
    async with issuing() as site:
        assert await check_logins("here", "there", f"{site.url}/mcp") is None
        site.put(f"{WELL_KNOWN}/mcp", said({"resource": f"{site.url}/mcp"}))
        assert await check_logins("here", "there", f"{site.url}/mcp") is None
