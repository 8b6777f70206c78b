"""A server of ours as one that knows the handshake alone: it takes every request as one that belongs to a session.

python -m tests.checks.interop.gateway.old MODULE [ARGUMENT ...]
"""

import sys
from runpy import run_module

from shared.protocol.http import rules
from shared.protocol.session import admission

if __name__ == "__main__":
    rules.is_stateless = lambda *_: False  # type: ignore[assignment]
    rules.claims_envelope = admission.claims_envelope = lambda _params: False  # type: ignore[attr-defined]
    del sys.argv[0]
    run_module(sys.argv[0], run_name="__main__", alter_sys=True)
