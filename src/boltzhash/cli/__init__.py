"""The ``boltzhash`` command, one file for each group of commands."""
