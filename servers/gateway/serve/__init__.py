"""Programs that run several servers in one process: over HTTP on one port, or joined as one over stdio."""
