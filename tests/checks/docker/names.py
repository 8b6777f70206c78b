"""A name server, as Docker's is to containers: one name, and the addresses of all that run."""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address
from threading import Thread

HEADER = struct.Struct(">HHHHHH")
ANSWERED = 0x8180
"""The flags of an answer without error."""
# The name that was asked for, IPv4, of the internet, good for no time at all, four bytes.
RECORD = struct.pack(">HHHIH", 0xC00C, 1, 1, 0, 4)


@contextmanager
def naming(addresses: Sequence[str]) -> Iterator[int]:
    """The port on which whatever is asked for has these addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        thread = Thread(target=_answer, args=(asked, addresses))
        thread.start()
        try:
            yield port
        finally:
            asked.sendto(b"", ("127.0.0.1", port))
            thread.join()


def _answer(asked: socket.socket, addresses: Sequence[str]) -> None:
    records = b"".join(RECORD + IPv4Address(one).packed for one in addresses)
    while True:
        message, sender = asked.recvfrom(512)
        if not message:
            return
        head = HEADER.pack(*struct.unpack(">H", message[:2]), ANSWERED, 1, len(addresses), 0, 0)
        asked.sendto(head + message[HEADER.size :] + records, sender)
