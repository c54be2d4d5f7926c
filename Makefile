PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
CHECKED := src tests experiments benchmarks

.PHONY: install demo test lint types tests test-slow test-kill clean

install: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("boltzhash needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,parquet,dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/boltzhash demo $${QUERY:+"$$QUERY"}

test: lint types tests

lint: $(READY)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)

types: $(READY)
	$(BIN)/mypy

tests: $(READY)
	$(BIN)/python -m pytest -m 'not slow'

# Trains on the benchmark corpora for about an hour; needs BOLTZHASH_DATA.
test-slow: $(READY)
	$(BIN)/python -m pytest -m slow -s

# Kills writers to a collection at random moments, 2,000 times; about five minutes.
test-kill: $(READY)
	$(BIN)/python tests/collection/kill_writers.py --kills 2000

clean:
	rm -rf .venv build dist src/*.egg-info
