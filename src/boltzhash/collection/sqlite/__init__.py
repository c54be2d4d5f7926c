"""A collection in a folder: SQLite keeps it, a mapped file of codes is searched."""
