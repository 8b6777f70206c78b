"""A bench for authors of clients: every behaviour that a client of the protocol can meet."""
