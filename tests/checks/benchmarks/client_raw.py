"""A client without any library: it writes what was encoded before, and waits for the end of an answer. What the
answers say is looked at when the clock has stopped."""

import os
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from tests.checks.benchmarks.client_load import AT_ONCE
from tests.checks.benchmarks.machine import apart
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.pipes import CHUNK, PATIENCE, Pipes, sample
from tests.checks.benchmarks.web import ALWAYS, HOST, PATH, Web, stateless

_END = b"}}"
"""How each answer over HTTP ends."""


def over_pipes(command: list[str], ask: Ask) -> list[float]:
    """Calls a second to a server that is started: one at a time, and so many at once."""
    with Pipes(command) as server:
        server.one_at_a_time(ask, 1)
        with apart(server.pid):
            return [sample(partial(server.one_at_a_time, ask)), sample(partial(server.at_once, ask, AT_ONCE))]


def over_http(web: Web, ask: Ask) -> list[float]:
    """The same to a server that listens, with a connection for each that is under way."""
    head = {"Host": f"{HOST}:{web.port}", **ALWAYS, **stateless(ask)}
    lines = [f"{name}: {value}\r\n" for name, value in head.items()]
    start = f"POST {PATH} HTTP/1.1\r\n{''.join(lines)}Content-Length: "

    def written(id: int) -> bytes:
        body = ask.text(id)
        return f"{start}{len(body)}\r\n\r\n".encode() + body

    with apart(web.pid):
        return [sample(partial(_rate, web.port, written, ask, at_once)) for at_once in (1, AT_ONCE)]


def _rate(port: int, written: Callable[[int], bytes], ask: Ask, at_once: int, count: int) -> float:
    requests = [written(number) for number in range(count, 0, -1)]
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(at_once):
            line = stack.enter_context(socket.create_connection((HOST, port), PATIENCE))
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(line, selectors.EVENT_READ, bytearray())
        began = time.perf_counter()
        answers = _exchanged(selector, requests)
        took = time.perf_counter() - began
    bad = next((answer for answer in answers if ask.expected not in answer), None)
    if bad is not None or len(answers) != count:
        raise ValueError(f"{len(answers)} answers to {count} requests, one of them {bad!r:.500}")
    return count / took


def _exchanged(selector: selectors.BaseSelector, requests: list[bytes]) -> list[bytes]:
    """The answers to all requests; each connection has one under way."""
    answers: list[bytes] = []
    for key in list(selector.get_map().values()):
        _send_next(selector, key, requests)
    while selector.get_map():
        for key, _ in selector.select(PATIENCE):
            chunk = key.fileobj.recv(CHUNK)
            if not chunk:
                raise EOFError(f"no answer but {bytes(key.data)!r:.500}")
            key.data.extend(chunk)
            if chunk.endswith(_END):
                answers.append(bytes(key.data))
                key.data.clear()
                _send_next(selector, key, requests)
    return answers


def _send_next(selector: selectors.BaseSelector, key: selectors.SelectorKey, requests: list[bytes]) -> None:
    if requests:
        os.write(key.fd, requests.pop())
    else:
        selector.unregister(key.fileobj)
