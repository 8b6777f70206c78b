"""A program that says its process id on stderr, and nothing else, and that ends only when it is killed."""

import os
import signal
import sys
import threading

signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("pid", os.getpid(), file=sys.stderr, flush=True)
threading.Event().wait()
