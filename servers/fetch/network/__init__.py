"""The hosts that may be reached, and connections to just the addresses that were checked."""
