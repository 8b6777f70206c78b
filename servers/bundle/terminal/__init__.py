"""What the commands `call`, `read`, `watch`, `prompt` and `inspect` have in common, which use any server from a
terminal."""
