"""The handlers of the protocol's methods. A handler accepts the run, the context of the call and its params."""
