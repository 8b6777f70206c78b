"""The calls of a client: requests, answers to questions in the meantime, and results."""
