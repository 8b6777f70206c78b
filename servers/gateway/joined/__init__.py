"""Several servers of one process as one server."""
