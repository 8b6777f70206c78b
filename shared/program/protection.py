"""Options for access to a server over HTTP, for its limits, and for its audit log."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, PrivateAttr

from ..auth.policy import Rules
from .settings.options import option, secret


class RuledOptions(BaseModel, defer_build=True):
    """Options to which rules belong. The rules come from tables in the settings file, because they do not fit into
    options."""

    _rules: Rules = PrivateAttr(default_factory=Rules)

    @property
    def rules(self) -> Rules:
        """The rules of access to the server."""
        return self._rules

    def set_rules(self, rules: Rules) -> None:
        """Set the rules of access to the server."""
        self._rules = rules

    @property
    def tokens_have_scopes(self) -> bool:
        """True if a token may allow less than everything."""
        return False


class ProtectionOptions(RuledOptions):
    """Options of every server for protecting it."""

    tokens_file: Path | None = option(None, "TOML file of named tokens, stored as digests", "FILE")
    auth_issuer: list[str] = option([], "authorization server whose tokens are accepted, for HTTP", "URL")
    public_url: str | None = option(None, "URL at which clients reach this server, behind a proxy", "URL")
    trusted_proxy: list[str] = option(
        [], "address or network of a proxy whose X-Forwarded-For header names the client", "NETWORK"
    )
    auth_algorithm: list[str] = Field(
        [], description="signature algorithm to accept for tokens, instead of the defaults"
    )
    auth_skew: float = Field(60.0, ge=0, le=600, description="tolerated clock difference from an issuer, in seconds")
    auth_principal_claim: str = Field("sub", description="token claim whose value is the NAME in [principal.NAME]")
    auth_dpop: Literal["bound", "required", "nonce"] = Field(
        "bound", description="tokens that need a DPoP proof: bound ones, all, or all with this server's nonce"
    )
    auth_client_id: str | None = option(None, "client id for introspection, for tokens that are not JWTs", "ID")
    auth_client_secret: str | None = secret(None, "client secret for introspection")
    auth_client_secret_file: Path | None = option(None, "file with the client secret for introspection", "FILE")
    max_rate: float = Field(1_000.0, gt=0, description="requests per second of one principal, or of one address")
    max_burst: float = Field(10_000.0, ge=1, description="requests in a burst, before --max-rate applies")
    max_client_calls: int = Field(512, ge=1, description="requests of one principal that may be in progress at once")
    max_client_sessions: int = Field(10_000, ge=1, description="sessions of one principal that may be open at once")
    max_client_bytes: int = Field(100 * 1024**3, ge=1024, description="bytes per day to and from one principal")
    audit: Path | None = option(None, "file that records each request, as JSON lines", "FILE")
    audit_arguments: bool = Field(False, description="log arguments without their secrets, instead of their digest")
    audit_required: bool = Field(False, description="refuse requests while the audit log can't be written")
    audit_bytes: int = Field(100 * 1024**2, ge=65_536, description="size at which the audit log is rotated")
    audit_files: int = Field(10, ge=1, description="number of audit log files to keep")

    @property
    def tokens_have_scopes(self) -> bool:
        """True if a token may allow less than everything."""
        return bool(self.auth_issuer) or self.tokens_file is not None
