"""The handlers of the methods of the protocol: functions of the run, the context of the call and its params."""
