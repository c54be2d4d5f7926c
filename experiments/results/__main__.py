"""Take over the results of another machine, from a folder with its files."""

import argparse
from pathlib import Path

from experiments.results.files import read, write

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="such as quality.jsonl")
for path in parser.parse_args().files:
    results = read(path)
    write(path.stem, *results.values())
    print(f"{path.stem}: {len(results)} results taken over", flush=True)
