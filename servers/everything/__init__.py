"""A test bench for client authors, with every behavior that a client of the protocol can meet."""
