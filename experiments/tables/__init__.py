"""From ``results`` to the tables of the documentation."""
