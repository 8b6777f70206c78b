"""The official client, as its documentation would have it used; see `client_load.py`."""

import asyncio

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.checks.benchmarks.client_load import Job, tell
from tests.checks.benchmarks.peers import ROOT


async def main(job: Job) -> None:
    """Does the job."""
    if isinstance(job.target, str):
        target = job.target
    else:
        command, *arguments = job.target
        target = stdio_client(StdioServerParameters(command=command, args=arguments, cwd=ROOT))
    async with Client(target) as client:

        async def call() -> str:
            (block,) = (await client.call_tool(job.tool, job.arguments)).content
            return block.text

        await tell(job, call)


if __name__ == "__main__":
    asyncio.run(main(Job.read()))
