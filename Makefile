PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
CHECKED := src tests experiments benchmarks

.PHONY: install demo test lint types tests test-engines test-slow test-kernel test-kill bench-search bench-search-small clean

install: $(READY)

$(READY): pyproject.toml constraints.txt setup.py $(wildcard src/boltzhash/*.[ch] src/boltzhash/search/kernel/*)
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
	$(BIN)/python -m pytest -m 'not slow and not engines'

# Runs the contract of collections on PostgreSQL, Milvus and Ray, which it starts and stops; minutes.
test-engines: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[engines-test]'
	BOLTZHASH_TEST_ENGINES=1 $(BIN)/python -m pytest -m engines

# Trains on the benchmark corpora for about an hour; needs BOLTZHASH_DATA.
test-slow: $(READY)
	$(BIN)/python -m pytest -m slow -s

# Fuzzes the search kernel under sanitizers and, emulated, on ARM; a few minutes.
test-kernel: $(READY)
	tests/search/kernel/run

# Needs a quiet machine.
bench-search: $(READY)
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/search_report.py

bench-search-small: $(READY)
	$(BIN)/python benchmarks/search.py --small

# Kills writers to a collection at random moments, 2,000 times; about five minutes.
test-kill: $(READY)
	$(BIN)/python tests/collection/kill_writers.py --kills 2000

clean:
	rm -rf .venv build dist src/*.egg-info src/boltzhash/*.so src/boltzhash/search/*.so
