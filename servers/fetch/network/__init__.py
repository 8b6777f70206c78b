"""The hosts that may be reached, and connections only to addresses that were checked."""
