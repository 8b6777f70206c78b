"""The implementation of `call`, `read`, `watch`, `prompt` and `inspect`, which use any server from a terminal."""
