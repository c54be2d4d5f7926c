"""boltzhash inside other libraries, a file for each; every one has its extra."""
