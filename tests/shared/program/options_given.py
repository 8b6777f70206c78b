"""Example values of each common option, as written on a command line, in the environment and in a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from servers.filesystem.settings import Settings
from shared.program.run import Options
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, LineValues


class Given(NamedTuple):
    """Two values of an option, written and parsed."""

    written: tuple[str, ...]
    """Once for each time that the option is given; nothing for a switch."""
    value: Any
    other_written: str
    """In the environment."""
    other: Any

    def words(self, name: str) -> list[str]:
        """Returns the words of a command line with the value."""
        flag = "--" + name.replace("_", "-")
        return [word for one in self.written for word in (flag, one)] or [flag]


_PATHS = ("settings", "token_file", "trace", "tokens_file", "auth_client_secret_file", "audit", "store_password_file")
_SWITCHES = ("no_auth", "cards", "audit_arguments", "audit_required", "access_log")
_COUNTS = (
    *("max_entries", "max_calls", "max_tasks", "max_client_tasks", "max_sessions", "max_client_calls"),
    *("max_client_sessions", "audit_files", "workers", "port"),
)
_BYTES = ("max_message", "max_result", "max_text", "max_task_results", "max_client_bytes", "audit_bytes")
_NUMBERS = (
    "max_seconds",
    "question_seconds",
    "task_seconds",
    "idle_seconds",
    "auth_skew",
    "max_rate",
    "max_burst",
    "store_lease",
)
_TEXTS = {
    "transport": ("http", "stdio"),
    "host": ("::1", "10.0.0.1"),
    "path": ("/a", "/b"),
    "dialects": ("off", "on"),
    "log_level": ("debug", "error"),
    "log_format": ("json", "text"),
    "public_url": ("https://a", "https://b"),
    "auth_principal_claim": ("email", "name"),
    "auth_dpop": ("nonce", "required"),
    "auth_client_id": ("a", "b"),
    "store": ("redis://a", "unix:///b"),
    "store_prefix": ("a:", "b:"),
    "otlp": ("http://a:4318", "https://b/otlp"),
}
_LISTS = {
    "allowed_host": (["a:1", "b"], "c:80, d"),
    "allowed_origin": (["https://a:1"], "http://b,http://c:8"),
    "auth_issuer": (["https://a", "https://b"], "https://c,https://d"),
    "trusted_proxy": (["10.0.0.1"], "10.0.0.0/8,::1"),
    "auth_algorithm": (["ES256"], "RS256"),
}
GIVEN: Mapping[str, Given] = {
    **{name: Given(("/a",), Path("/a"), "/b", Path("/b")) for name in _PATHS},
    **{name: Given((), True, "no", False) for name in _SWITCHES},
    **{name: Given(("5",), 5, "6", 6) for name in _COUNTS},
    **{name: Given(("70000",), 70_000, "80000", 80_000) for name in _BYTES},
    **{name: Given(("1.5",), 1.5, "2", 2.0) for name in _NUMBERS},
    **{name: Given((one,), one, other, other) for name, (one, other) in _TEXTS.items()},
    **{
        name: Given(tuple(one), one, other, [part.strip() for part in other.split(",")])
        for name, (one, other) in _LISTS.items()
    },
}
SECRETS = {"token", "auth_client_secret"}
"""Options that only environment variables and files may set."""


def parser() -> OptionParser:
    """Returns the option parser of the filesystem server."""
    return OptionParser("files", [Group(Settings.model_fields, "files"), Group(Options.model_fields, "every server")])


def words(*arguments: str) -> LineValues:
    """Parses a command line of the filesystem server."""
    return parser().read(arguments)
