"""Goes through the matrix and prints it: every version of our client, by every way, to an old and a new server.

python -m tests.checks.interop.gateway [--way NAME ...] [--seconds N] [--client DATE]

Below stand the rows that failed, and what went wrong. Exit code: 1 where one of our ways failed, else 0.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import anyio

from tests.checks.interop.gateway.columns import Column, columns, drive
from tests.checks.interop.gateway.table import table
from tests.checks.interop.gateway.ways import OTHERS, WAYS


def main() -> int:
    """Runs the columns that were asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", action="append", choices=WAYS, help="this way alone; may be given several times")
    parser.add_argument("--client", help="this version of the client alone")
    parser.add_argument("--server", choices=["old", "new"], help="this server alone")
    parser.add_argument("--seconds", type=float, default=10, help="how long a row may take")
    given = parser.parse_args()
    chosen = [
        column
        for column in columns(given.way or WAYS)
        if given.client in (None, column.version) and given.server in (None, column.age)
    ]
    found = {column: _driven(column, given.seconds) for column in chosen}
    print("\n".join(table(found)))
    failed = [
        (column, row, outcome) for column, rows in found.items() for row, outcome in rows.items() if outcome != "ok"
    ]
    for column, row, outcome in failed:
        print(f"\n{column.way}, client {column.version}, {column.age} server: {row}: {outcome[:600]}")
    return int(any(column.way not in OTHERS for column, _, _ in failed))


def _driven(column: Column, seconds: float) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(drive, column, Path(folder), seconds)


if __name__ == "__main__":
    sys.exit(main())
