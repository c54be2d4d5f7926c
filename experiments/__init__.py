"""The paper's experiments, and ours: runs → results → tables and figures. README.md has the way."""
