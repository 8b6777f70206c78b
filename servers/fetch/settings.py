"""The operator's settings for the fetch server."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from shared import __version__
from shared.program.messages import missing_extra_message
from shared.program.settings.options import expand_home, option

from .errors import FetchError
from .load.headers import HostHeader, make_user_agent, parse_host_header
from .network.address_policy import Policy, Rules
from .network.proxy import parse_proxy


class Narrowing(BaseModel, defer_build=True):
    """The part of the web that a principal can be limited to."""

    allow_host: list[str] = Field([], description="hosts that may be reached, with their subdomains, and no others")


class Settings(BaseModel):
    """The hosts that may be reached, the limits for one page, and how this server identifies itself."""

    narrowing: ClassVar[type[BaseModel]] = Narrowing

    # Headers and the proxy's URL contain secrets.
    model_config = ConfigDict(hide_input_in_errors=True)

    allow_private: list[str] = option(
        [], "private host or network to allow: HOST[:PORT] or NET[:PORT]; * means any port", "HOST"
    )
    allow_host: list[str] = option([], "host to allow, with its subdomains; all others are refused", "HOST")
    deny_host: list[str] = option([], "host to refuse, including its subdomains", "HOST")
    allow_port: list[int] = option([80, 443], "port to allow", "PORT")
    user_agent: str | None = Field(None, description="User-Agent to send, instead of the one that names this server")
    ignore_robots: bool = Field(False, description="ignore robots.txt")
    header: list[str] = Field(
        [],
        repr=False,
        description="header for one host, hidden from clients: HOST[:PORT]=NAME:VALUE",
        json_schema_extra={"metavar": "HOST=NAME:VALUE"},
    )
    proxy_url: str | None = Field(
        None,
        repr=False,
        description="proxy for all requests; this server still resolves and checks the hosts",
        json_schema_extra={"metavar": "URL"},
    )
    ca_file: Path | None = option(None, "PEM file of certificate authorities, in addition to the system's", "FILE")
    timeout: float = Field(20, gt=0, le=600, description="time limit for loading a page, in seconds")
    max_bytes: int = Field(
        20_000_000, ge=1_000, le=100_000_000, description="maximum bytes of a page, as sent and when unpacked"
    )
    max_redirects: int = Field(10, ge=0, le=50, description="maximum number of redirects to follow")
    max_concurrent: int = Field(50, ge=1, le=1_000, description="maximum number of pages fetched at once")
    max_per_host: int = Field(10, ge=1, le=100, description="maximum number of pages of one host fetched at once")
    poll: float = Field(60, ge=1, description="minimum seconds between two requests for a page with subscribers")
    cache: int = Field(16, ge=0, description="size of the page cache in mebibytes; 0 disables it")
    readers: int = Field(2, ge=1, le=32, description="number of processes that read pages")
    reading_time: float = Field(10, gt=0, le=600, description="time limit for reading a page, in seconds")
    reading_memory: int = Field(512, ge=128, description="memory limit for reading a page, in mebibytes")

    @field_validator("allow_private", "allow_host", "deny_host", "allow_port")
    @classmethod
    def _check_rules(cls, rules: list[Any], info: ValidationInfo) -> list[Any]:
        Policy(Rules(**{str(info.field_name): rules}))
        return rules

    @field_validator("proxy_url")
    @classmethod
    def _check_proxy(cls, url: str | None) -> str | None:
        if url is not None:
            parse_proxy(url)
        return url

    @field_validator("ca_file")
    @classmethod
    def _check_ca_file(cls, path: Path | None) -> Path | None:
        if path is None:
            return None
        path = expand_home(path)
        try:
            text = path.read_bytes()
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from None
        if b"-----BEGIN CERTIFICATE-----" not in text:
            raise ValueError(f"{path} contains no PEM certificates")
        return path

    @field_validator("header")
    @classmethod
    def _check_headers(cls, headers: list[str]) -> list[str]:
        for text in headers:
            parse_host_header(text)
        return headers

    @field_validator("user_agent")
    @classmethod
    def _check_user_agent(cls, agent: str | None) -> str | None:
        if agent is not None and not (agent.isascii() and agent.isprintable() and agent.strip() == agent != ""):
            raise ValueError("a User-Agent must be printable ASCII, not empty, and without spaces at its ends")
        return agent

    @model_validator(mode="after")
    def _check_libraries(self) -> Self:
        # These packages are imported for the first page, when an error would come too late.
        if any(find_spec(library) is None for library in ("httpx", "lxml")):
            raise ValueError(missing_extra_message("fetch"))
        return self

    @property
    def agent(self) -> str:
        """The `User-Agent` of requests."""
        return self.user_agent or make_user_agent(__version__)

    @property
    def headers(self) -> tuple[HostHeader, ...]:
        """Headers for single hosts."""
        return tuple(parse_host_header(text) for text in self.header)

    @property
    def rules(self) -> Rules:
        """The rules for hosts that may be reached."""
        return Rules(self.allow_private, self.allow_host, self.deny_host, self.allow_port)

    def narrow(self, narrowing: Narrowing) -> Self:
        """Return these settings limited to the given hosts. Raises ValueError for a host that these settings
        refuse."""
        if not narrowing.allow_host:
            raise ValueError("allow-host: name at least one")
        policy = Policy(Rules(allow_host=self.allow_host, deny_host=self.deny_host))
        for host in Policy(Rules(allow_host=narrowing.allow_host)).allowed:
            try:
                policy.check_host(host, 443)
            except FetchError as error:
                raise ValueError(f"allow-host: {error}") from None
        return self.model_copy(update={"allow_host": list(narrowing.allow_host)})
