# Everything runs in a virtual environment of its own; the first call makes it.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-slow lint format bench docs docs-serve evidence clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: .venv/core ## learn a rule on a small grid and write demo/report.html (under a minute)
	$(BIN)/tacit demo --out demo

test: lint ## the checks that gate every change
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: .venv/dev ## the checks that take minutes
	$(BIN)/python -m pytest -m slow --timeout 3600

lint: .venv/dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: .venv/dev ## rewrite the code in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/dev ## speed, as ratios to a peer in the same run
	@missed=0; for script in beta_quantile worlds highway training memory inference \
			expert_sets stable_baselines; do \
		echo "== benchmarks/$$script.py"; \
		$(BIN)/python benchmarks/$$script.py || missed=1; \
	done; exit $$missed

docs: .venv/dev ## the documentation as a site, in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: .venv/dev ## the same in a browser, at http://127.0.0.1:8000
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

evidence: .venv/dev ## write the tables of docs/evidence from the result files there
	$(BIN)/python docs/evidence/generate.py

clean: ## remove the virtual environment, the site and what the demo wrote
	rm -rf .venv demo site

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/core: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch .venv/core $@
