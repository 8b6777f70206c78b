"""Authentication and authorization of the clients of a server over HTTP."""
