"""A test bench for client authors, with every behaviour that a client of the protocol can meet."""
