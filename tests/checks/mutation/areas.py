"""Where a small mistake does harm that nobody sees at once, and the tests that are to notice it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Area:
    """Files that are changed, as patterns of their paths, and the tests that run for it."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = {
    "protocol": Area(
        ("shared/protocol/*",),
        ("tests/shared/protocol", "tests/shared/server", "tests/shared/extensions", "tests/test_transcripts.py"),
    ),
    "limits": Area(
        (
            "shared/concurrency.py",
            "shared/server/dispatch/limits.py",
            "shared/server/dispatch/calls.py",
            "shared/server/dispatch/turns.py",
            "shared/stores/*",
            "shared/transports/http/engine/connections.py",
            "shared/transports/http/limits/endpoint_limits.py",
            "shared/transports/http/limits/client_shares.py",
            "shared/transports/http/streamable/streams.py",
            "shared/transports/stdio.py",
        ),
        (
            "tests/shared/transports",
            "tests/shared/stores",
            "tests/checks/stores",
            "tests/shared/server",
            "tests/shared/test_concurrency.py",
            "tests/checks/faults/test_amounts.py",
        ),
    ),
    "hosts": Area(
        ("servers/bundle/hosts/*",),
        (
            "tests/servers/bundle/hosts",
            "tests/servers/bundle/commands/test_config.py",
            "tests/servers/bundle/commands/test_install.py",
        ),
    ),
    "filesystem": Area(
        ("shared/program/files/*", "servers/common/files/*", "servers/filesystem/edit/*"),
        ("tests/shared/program/files", "tests/servers/common/files", "tests/servers/filesystem"),
    ),
    "sqlite": Area(
        ("servers/sqlite/engine/*", "servers/sqlite/write/*"), ("tests/servers/sqlite", "tests/servers/common/sql")
    ),
    "fetch": Area(("servers/fetch/network/*", "servers/fetch/load/robots.py"), ("tests/servers/fetch",)),
    "prompts": Area(("servers/prompts/library/folder.py", "servers/prompts/write/*"), ("tests/servers/prompts",)),
}
