"""The listening socket of a stopping replica."""

import socket
import sys

import pytest

from shared.transports.http.engine.graceful_close import stop_accepting
from shared.transports.http.listener import listen


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can drop what comes to a socket")
def test_queued_connections_are_accepted_but_new_ones_are_dropped() -> None:
    with listen("127.0.0.1", 0) as listener, socket.socket() as late:
        address = listener.getsockname()
        with socket.create_connection(address) as waiting:
            stop_accepting(listener)
            accepted, _ = listener.accept()
            with accepted:
                waiting.sendall(b"served")
                assert accepted.recv(6) == b"served"
                late.setblocking(False)
                late.connect_ex(address)
                assert late.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
                with pytest.raises(OSError, match="not connected"):
                    late.getpeername()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
