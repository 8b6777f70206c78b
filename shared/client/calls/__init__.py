"""The calls of a client: requests, answers to questions that arrive in between, and results."""
