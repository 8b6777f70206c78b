"""Another server behind this program: how it is reached, as whom, and whether its tools are as they were accepted."""
