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
            "shared/kit/expiry.py",
            "shared/server/limits.py",
            "shared/server/calls.py",
            "shared/server/thread_turns.py",
            "shared/stores/*",
            "shared/transports/http/connections.py",
            "shared/transports/http/limits.py",
            "shared/transports/http/quotas.py",
            "shared/transports/http/streams.py",
            "shared/transports/stdio.py",
        ),
        (
            "tests/shared/transports",
            "tests/shared/stores",
            "tests/checks/stores",
            "tests/shared/server",
            "tests/shared/kit/test_expiry.py",
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
        ("shared/kit/rooted/*", "servers/filesystem/edit/*"), ("tests/shared/kit/rooted", "tests/servers/filesystem")
    ),
    "sqlite": Area(
        ("servers/sqlite/engine/*", "servers/sqlite/write/*"), ("tests/servers/sqlite", "tests/servers/sql")
    ),
    "fetch": Area(("servers/fetch/network/*", "servers/fetch/load/robots.py"), ("tests/servers/fetch",)),
    "prompts": Area(("servers/prompts/library/folder.py", "servers/prompts/write/*"), ("tests/servers/prompts",)),
}
