"""The options for observing a running server: traces and metrics, and a log of its HTTP requests."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field

from ..version import __version__
from .messages import missing_extra_message
from .settings.options import option

if TYPE_CHECKING:
    from ..telemetry.otel import Telemetry


def _check_collector(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("the URL of a receiver must start with http:// or https://, without a query")
    return url


class ObservationOptions(BaseModel, defer_build=True):
    """Options of every server for observing it."""

    otlp: Annotated[str, AfterValidator(_check_collector)] | None = option(
        None, "OTLP/HTTP collector of traces and metrics, such as http://localhost:4318", "URL"
    )
    access_log: bool = Field(False, description="log a line for each HTTP request, regardless of the log level")


def open_telemetry(options: ObservationOptions, service: str) -> "Telemetry | None":
    """Return an object that sends spans and metrics to the collector, under the name `service`; None without a
    collector. Raises ValueError if the library is not installed, or its environment variables are invalid."""
    if options.otlp is None:
        return None
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise ValueError(f"--otlp: {missing_extra_message('otel')}")
    from ..telemetry.otel import Telemetry

    try:
        return Telemetry(options.otlp, service, __version__)
    except ValueError as error:
        raise ValueError(f"--otlp: {error}") from None
