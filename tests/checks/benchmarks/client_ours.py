"""Our client, as its documentation would have it used; see `client_load.py`."""

import asyncio

from shared.client.connect import connect
from tests.checks.benchmarks.client_load import Job, tell


async def main(job: Job) -> None:
    """Does the job."""
    async with connect(job.target) as client:

        async def call() -> str:
            return (await client.call_tool(job.tool, job.arguments)).text

        await tell(job, call)


if __name__ == "__main__":
    asyncio.run(main(Job.read()))
