"""The workbench: a web page on which people see and use what the servers offer."""
