"""`python -m servers`, and the console script `mcp-server-bundle`."""

import sys

from .bundle.program import main

if __name__ == "__main__":
    sys.exit(main())
