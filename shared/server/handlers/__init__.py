"""The answer to each method of the protocol: a function, given the run, the context of the call and its params."""
