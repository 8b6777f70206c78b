"""Message transports, each in a module that is imported only when it is chosen."""
