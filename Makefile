PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
CHECKED := src tests experiments benchmarks examples docs/build_site.py docs/run_examples.py setup.py conftest.py

PORT ?= 8000
DEMO := build/demo

.PHONY: install demo serve test lint types tests test-engines test-order test-slow test-kernel test-kill test-service test-fuzz test-browser test-minimal test-wheel test-integrations site examples bench-page \
	bench bench-search bench-search-small bench-full bench-service bench-load bench-alternatives soak screenshots tables experiments-smoke clean

install: $(READY)

$(READY): pyproject.toml constraints.txt setup.py $(wildcard src/boltzhash/*/*.[ch] src/boltzhash/*/*/*.[ch])
	$(PYTHON) -c 'import sys; sys.exit("boltzhash needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	find src -name '*.so' -delete # one with another ending, from an earlier build, would be found first
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,parquet,serve,map,dev,docs]'
	touch $(READY)

demo: $(READY)
	$(BIN)/boltzhash demo --output $(DEMO) $${QUERY:+"$$QUERY"}
	@echo "From here: make serve, and open http://localhost:$(PORT)/"

# The demo's collection on a page in the browser: http://localhost:8000/, or PORT=…
serve: | $(DEMO)/map/config.json
	$(BIN)/boltzhash serve $(DEMO) --port $(PORT)

$(DEMO)/collection.sqlite: | $(READY)
	$(BIN)/boltzhash demo --output $(DEMO)

$(DEMO)/map/config.json: | $(DEMO)/collection.sqlite
	$(BIN)/boltzhash map $(DEMO)

test: lint types tests

lint: $(READY)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)

types: $(READY)
	$(BIN)/mypy

# One thread each: on a machine with other work, threads that spin wait for a core that is taken.
tests test-order test-engines experiments-smoke: export OMP_NUM_THREADS ?= 1

QUICK := 'not slow and not engines and not browser and not service and not fuzz'

# One process more than there are CPUs: beside other work three get more of two CPUs than two do.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
tests: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m $(QUICK)

# The same in random order, ten times. Each run prints its seed; --random-order-seed repeats it.
test-order: $(READY)
	for workers in 1 1 2 2 2 3 3 3 5 5; do \
		$(BIN)/python -m pytest -n $$workers --dist worksteal --random-order -m $(QUICK) || exit 1; \
	done

# Runs the contract of collections on PostgreSQL and on Ray, which it starts and stops; minutes.
test-engines: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[engines-test]'
	BOLTZHASH_TEST_ENGINES=1 $(BIN)/python -m pytest -m engines tests/collection tests/encoding

# Trains on the benchmark corpora for about an hour; needs BOLTZHASH_DATA.
test-slow: $(READY)
	$(BIN)/python -m pytest -m slow -s

# Fuzzes the search kernel under sanitizers and, emulated, on ARM; a few minutes.
test-kernel: $(READY)
	tests/search/kernel/run

# What `pip install .` brings in a fresh environment: encoding, searching, and what the rest asks for.
test-minimal: $(READY)
	tests/minimal_install

# The sdist and the wheel, twice to the same bytes, and a part of the tests against them, compiled and not; a minute or two.
# `tests/wheel_install tests` runs all of them.
test-wheel: $(READY)
	tests/wheel_install

# boltzhash inside and beside other libraries, which it installs, with LangChain's and Haystack's own tests; a minute or two.
test-integrations: $(READY)
	tests/integrations/run

# Needs a quiet machine.
bench-search: $(READY)
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/search_report.py

# Encoding, training on the CPU and a corpus larger than memory, in full: about an hour. Needs BOLTZHASH_DATA and a quiet machine.
bench-full: bench-search
	$(BIN)/python benchmarks/encoding.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/fitting.py
	$(BIN)/python benchmarks/busy.py
	$(BIN)/python benchmarks/larger_than_memory.py
	$(BIN)/python benchmarks/report.py

bench-search-small: $(READY)
	$(BIN)/python benchmarks/search.py --small

# Kills writers to a collection at random moments, 2,000 times; about five minutes.
test-kill: $(READY)
	$(BIN)/python tests/collection/kill_writers.py --kills 2000

# Tables and figures of the docs from the result files, byte for byte.
tables: $(READY)
	$(BIN)/python -m experiments.tables
	$(BIN)/python -m experiments.figures

# The whole path of the experiments, small: runs, result files, a table, a figure. Needs BOLTZHASH_DATA.
experiments-smoke: $(READY)
	rm -rf build/smoke
	RESULTS=build/smoke $(BIN)/python -m experiments.runs smoke --device cpu
	RESULTS=build/smoke $(BIN)/python -m experiments.runs smoke --device cpu | grep -x '0 runs to do'
	RESULTS=build/smoke $(BIN)/python -m experiments.tables --print smoke
	RESULTS=build/smoke $(BIN)/python -m experiments.figures --folder build/smoke/figures
	test -s build/smoke/figures/smoke.svg

# Everything that is measured, small, each ratio beside its bar; some minutes. What a GPU takes: benchmarks/training_gpu.py.
bench: $(READY)
	$(BIN)/python benchmarks/search.py --small
	$(BIN)/python benchmarks/encoding.py --small
	$(BIN)/python benchmarks/training.py --small
	$(BIN)/python benchmarks/fitting.py --small
	$(BIN)/python benchmarks/busy.py --small
	$(BIN)/python benchmarks/larger_than_memory.py --small
	rm -rf build/bench
	mkdir -p build/bench
	$(BIN)/python benchmarks/ten_million.py --at build/bench/library --documents 100000 --output build/bench/steps.json

# A running service under load, with killed workers and hostile clients; wants a quiet machine.
test-service: $(READY)
	$(BIN)/python -m pytest -m service tests

# Requests made up from the OpenAPI description, for some minutes.
test-fuzz: $(READY)
	$(BIN)/python -m pytest -m fuzz tests/server

# The page in a real Chromium; as root, Debian's is installed where there is none.
test-browser: $(READY)
	tests/server/install-browser
	$(BIN)/python -m pytest -m browser tests/server

# Searches per second beside another search server, a minute of load with a killed worker, then starts over
# a million documents; wants a quiet machine. bench-load is the first part alone.
bench-service: bench-load
	$(BIN)/python benchmarks/service.py $(DEMO)
	$(BIN)/python benchmarks/service_start.py

bench-load: | $(DEMO)/collection.sqlite
	tests/server/install-packages wrk=wrk groonga=groonga-bin
	$(BIN)/python benchmarks/service_load.py $(DEMO)

# bm25s, sentence-transformers, BERTopic and wordllama on the same texts, each in an environment of its own (5 GB under
# build/alternatives); half an hour on two busy cores. Needs BOLTZHASH_DATA.
bench-alternatives: $(READY)
	$(BIN)/python benchmarks/alternatives.py

# A service for MINUTES with killed workers, a full disk and a wrong clock: does it tell the truth?
MINUTES ?= 60
soak: $(READY)
	tests/server/install-packages faketime=libfaketime || true
	$(BIN)/python benchmarks/soak.py --minutes $(MINUTES)

# How long each interaction with the page takes, in Chromium; wants a quiet machine.
bench-page: | $(DEMO)/map/config.json
	PYTHONPATH=. $(BIN)/python benchmarks/page.py $(DEMO)

# The site in build/site, strictly: a link that leads nowhere is an error. Half a minute.
site: $(READY)
	$(BIN)/python docs/build_site.py

# What the scripts of examples/ print, for their pages; some minutes. Needs BOLTZHASH_DATA.
examples: $(READY)
	$(BIN)/python docs/run_examples.py

screenshots: | $(DEMO)/map/config.json
	PYTHONPATH=benchmarks $(BIN)/python docs/screenshots.py $(DEMO)

clean:
	rm -rf .venv build dist src/*.egg-info src/boltzhash/*/*.so src/boltzhash/*/*/*.so
