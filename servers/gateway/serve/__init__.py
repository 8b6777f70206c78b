"""Several servers in one process, on one port."""
