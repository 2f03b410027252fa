"""The command line: one file per group of commands, each with ``add_commands(groups)``."""
