"""The HTTP service that the tool `fetch` asks: the least that one can be. python api.py PORT"""

import asyncio
import sys

BODY = b'{"id": 7, "name": "a product", "price": 12.5, "stock": 340}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


class Api(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request, none of which has a body."""
        self._transport.write(ANSWER * data.count(b"\r\n\r\n"))  # type: ignore[attr-defined]


async def main() -> None:
    """Serves until it is ended."""
    server = await asyncio.get_running_loop().create_server(Api, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
