"""Folders that are written whole or not at all: models, codes, checkpoints."""
