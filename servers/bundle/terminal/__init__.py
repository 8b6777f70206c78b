"""The work of `call`, `read`, `watch`, `prompt` and `inspect`: any server, used from a terminal."""
