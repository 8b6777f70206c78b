"""Who may use a server over HTTP."""
