"""The calls of a client: requests, answers to the input requests that arrive before the results, and the results."""
