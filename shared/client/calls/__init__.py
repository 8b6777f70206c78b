"""The calls of a client: requests, answers to the questions that arrive meanwhile, and results."""
