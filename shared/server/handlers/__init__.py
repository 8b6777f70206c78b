"""The handlers of the protocol's methods: functions that accept the run, the context of the call, and its params."""
