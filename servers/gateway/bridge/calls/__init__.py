"""How a call reaches the server behind a bridge: one file for each kind of session, and what they share."""
