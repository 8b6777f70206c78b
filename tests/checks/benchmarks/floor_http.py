"""The floor over HTTP: a bare ASGI application, under the same uvicorn with httptools and uvloop.

python -m tests.checks.benchmarks.floor_http PORT
"""

import sys
from typing import Any

import uvicorn

from tests.checks.benchmarks.floor_answers import answer_to


async def serve(_scope: Any, receive: Any, send: Any) -> None:
    """Reads one message and answers it."""
    body, more = b"", True
    while more:
        part = await receive()
        body += part["body"]
        more = part["more_body"]
    answer = answer_to(body)
    content = answer or b""
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(content)),
        (b"mcp-session-id", b"none"),
    ]
    await send({"type": "http.response.start", "status": 202 if answer is None else 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


if __name__ == "__main__":
    uvicorn.run(
        serve,
        port=int(sys.argv[1]),
        http="httptools",
        loop="uvloop",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )
