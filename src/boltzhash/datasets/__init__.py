"""The benchmark corpora."""
