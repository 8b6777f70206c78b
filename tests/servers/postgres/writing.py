"""A database that tests change in their own process, without an MCP server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

from servers.common.sql.importing.files import text_opener
from servers.common.sql.importing.imports import Import, ImportResult
from servers.common.sql.importing.tables import FormatRequest
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.write.consent import Consent, Figures
from servers.common.sql.write.results import ResponseLimits, Statement, WriteResult
from servers.postgres.commits import Commit, CommitCallback
from servers.postgres.engine.deadline import Deadline, Limits
from servers.postgres.engine.link import Link, open_link
from servers.postgres.engine.target import parse_target
from servers.postgres.write import execution, importing
from servers.postgres.write.session import Session, SessionParts

LIMITS = ResponseLimits(AnswerLimits(1_000, 100_000, 10_000), 500_000)


class Writing:
    """The connections to a database, and its announced commits."""

    def __init__(self, writer: Link, reader: Link) -> None:
        self.writer = writer
        self.commits: list[Commit] = []
        self.on_committed: CommitCallback = self.commits.append
        self._reader = reader

    async def execute(
        self,
        *queries: str,
        parameters: Sequence[Sequence[Any]] = (),
        only_tables: bool = False,
        consent: Consent = Consent(),  # noqa: B008 - it is a tuple
    ) -> WriteResult:
        """Runs statements as `write_query` does, or with `only_tables` as `create_table`."""
        done = await self.ask_first(*queries, parameters=parameters, only_tables=only_tables, consent=consent)
        assert not isinstance(done, Figures)
        return done

    async def ask_first(
        self, *queries: str, parameters: Sequence[Sequence[Any]] = (), only_tables: bool = False, consent: Consent
    ) -> WriteResult | Figures:
        """Runs statements, or returns the figures that need the user's consent."""
        given = parameters or [()] * len(queries)
        statements = [Statement(*one) for one in zip(queries, given, strict=True)]
        done = await execution.execute(statements, LIMITS, consent, self._session(), only_tables=only_tables)
        return done if isinstance(done, Figures) else done.value

    async def dry_run(self, *queries: str, limits: ResponseLimits = LIMITS) -> WriteResult:
        """Returns the result of a dry run of these statements."""
        done = await execution.dry_run([Statement(query) for query in queries], limits, self._session())
        return done.value

    async def import_csv(
        self,
        table: str,
        csv: str,
        form: FormatRequest = FormatRequest(),  # noqa: B008 - it is a tuple
        consent: Consent = Consent(),  # noqa: B008 - it is a tuple
    ) -> ImportResult | Figures:
        """Imports this text as `import_csv` does."""
        return await importing.import_csv(Import(table, text_opener(csv), form), consent, self._session())

    def _session(self) -> Session:
        @asynccontextmanager
        async def lend_reader() -> AsyncIterator[Link]:
            yield self._reader

        return Session(
            SessionParts(self.writer, lend_reader, self.on_committed), Deadline(self.writer.limits.timeout)
        )


@asynccontextmanager
async def writing(url: str, limits: Limits = Limits()) -> AsyncIterator[Writing]:  # noqa: B008 - it is a tuple
    """Yields the database at this URL."""
    target = parse_target(url, True)
    with closing(await open_link(target, limits)) as writer, closing(await open_link(target, limits)) as reader:
        yield Writing(writer, reader)
