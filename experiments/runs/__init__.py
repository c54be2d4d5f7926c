"""What is run: models are trained, measured and written to ``results``."""
