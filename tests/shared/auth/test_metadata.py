"""Well-known URLs, and checks of their metadata, by table."""

import pytest

from shared.auth.metadata import (
    MetadataError,
    canonical,
    covers,
    is_same_issuer,
    issuer_metadata_urls,
    read_issuer_metadata,
    read_resource_metadata,
    resource_metadata_urls,
)


def test_an_issuer_without_a_path_has_two_metadata_urls() -> None:
    for issuer in ("https://as.example", "https://as.example/"):
        assert issuer_metadata_urls(issuer) == (
            "https://as.example/.well-known/oauth-authorization-server",
            "https://as.example/.well-known/openid-configuration",
        )


def test_an_issuer_with_a_path_has_three_metadata_urls() -> None:
    assert issuer_metadata_urls("https://as.example/tenant/1") == (
        "https://as.example/.well-known/oauth-authorization-server/tenant/1",
        "https://as.example/.well-known/openid-configuration/tenant/1",
        "https://as.example/tenant/1/.well-known/openid-configuration",
    )


def test_resource_metadata_urls_are_at_the_path_and_at_the_root() -> None:
    root = "https://rs.example/.well-known/oauth-protected-resource"
    assert resource_metadata_urls("https://rs.example/public/mcp?a=b") == (f"{root}/public/mcp", root)
    assert resource_metadata_urls("https://rs.example/") == (root,)


def test_invalid_metadata_and_metadata_of_another_issuer_are_refused() -> None:
    issuers = [
        {"issuer": issuer} for issuer in (1, "https://as.example//", "https://AS.example", "https://evil.example")
    ]
    own = {"issuer": "https://as.example", "jwks_uri": ["https://as.example/jwks"]}
    for document in (None, [], "text", {}, *issuers, own):
        with pytest.raises(MetadataError):
            read_issuer_metadata(document, "https://as.example")


def test_only_the_slash_of_a_root_makes_no_other_issuer() -> None:
    root, tenant = "https://as.example", "https://as.example/tenant"
    pairs = {(root, f"{root}/"): True, (f"{root}/", root): True, (tenant, f"{tenant}/"): False, (root, tenant): False}
    assert {pair: is_same_issuer(*pair) for pair in pairs} == pairs


def test_unknown_members_of_metadata_are_ignored() -> None:
    document = {"issuer": "https://as.example", "jwks_uri": "https://as.example/jwks", "x": {"y": 1}}
    assert read_issuer_metadata(document, "https://as.example").jwks_uri == "https://as.example/jwks"


def test_metadata_of_another_resource_is_refused() -> None:
    document = {"resource": "https://evil.example/mcp", "authorization_servers": ["https://as.example"]}
    with pytest.raises(MetadataError, match="another resource"):
        read_resource_metadata(document, "https://rs.example/mcp")


def test_an_error_shows_no_query_and_no_password() -> None:
    with pytest.raises(MetadataError) as caught:
        read_resource_metadata(
            {"resource": "https://evil.example/mcp"}, "https://me:s3cret@rs.example/mcp?key=s3cret"
        )
    assert str(caught.value) == "the metadata found for https://rs.example/mcp belongs to another resource"


def test_an_invalid_url_has_no_metadata_urls() -> None:
    for url in ("https://[", "https://as.example/\x01", "\x01https://as.example", "::::", "", "a b"):
        for urls in (issuer_metadata_urls, resource_metadata_urls):
            with pytest.raises(MetadataError, match="is not a URL"):
                urls(url)
        assert not covers(url, "https://rs.example/mcp")


def test_resource_urls_have_a_canonical_form() -> None:
    forms = {
        "HTTPS://RS.Example/MCP": "https://rs.example/MCP",
        "https://rs.example/": "https://rs.example",
        "https://rs.example:443/mcp/": "https://rs.example/mcp",
        "http://[::1]:8000/mcp": "http://[::1]:8000/mcp",
        "https://rs.example/mcp#part": "https://rs.example/mcp",
        "https://rs.example/mcp//": "https://rs.example/mcp/",
        "https://rs.example/mcp?a=B": "https://rs.example/mcp?a=B",
        "https://me@rs.example/": "https://me@rs.example",
        "urn:mine": "urn:mine",
        "https://rs.example:port/": "https://rs.example:port/",
    }
    assert {uri: canonical(uri) for uri in forms} == forms


def test_a_resource_covers_urls_below_its_path() -> None:
    mcp = "https://rs.example/mcp"
    covered = {("https://rs.example", mcp): True, (mcp, f"{mcp}/"): True, (mcp, f"{mcp}/more"): True}
    others = ("https://rs.example:444/mcp", "http://rs.example/mcp", f"{mcp}?a")
    covered |= {(mcp, f"{mcp}2"): False, (mcp, "https://rs.example/"): False, ("urn:mine", "urn:mine"): False}
    covered |= {(other, mcp): False for other in others}
    assert {pair: covers(*pair) for pair in covered} == covered
