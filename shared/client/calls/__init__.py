"""The calls of a client: what each sends, what it answers meanwhile, and what becomes of the result."""
