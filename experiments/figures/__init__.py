"""From ``results`` to docs/figures."""
