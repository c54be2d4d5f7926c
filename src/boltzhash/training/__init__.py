"""Everything that imports torch: how a network learns."""
