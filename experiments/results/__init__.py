"""What came of it: a file for each sweep, and the one module that reads and writes them."""
