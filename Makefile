# Everything a fresh machine needs: Python 3.11 or newer and make.
# Works from any folder: make -C path/to/this/folder lab

PYTHON ?= python3
LAB_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check $(if $(CI),--quiet)
COURSE := $(VENV)/.installed-course
DEV := $(VENV)/.installed-dev
# JupyterLab refuses to run as root unless told that this is meant (in a container, it is).
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help lab grade demo audit bench test test-quick lint results capture build release grade-class mutants clean
.DEFAULT_GOAL := help

help:
	@echo "make lab      the course in JupyterLab (LAB_ARGS are passed on, e.g. LAB_ARGS=--no-browser)"
	@echo "make grade    your points so far, with the reason for each that is missing"
	@echo "make demo     decode a prompt in the terminal, with and without speculation"
	@echo "make audit    prove it exact, and see the rogues condemned (10 seconds)"
	@echo "make bench    what speculation gains and loses on this computer (3 to 4 minutes)"
	@echo "make test     all tests, on small models and on the real one"
	@echo "make clean    remove what the others made here (not your notebooks, not the weights)"
	@echo "For instructors (docs/instructor.md): make release, make grade-class"
	@echo "For those who change the code: make test-quick, lint, results, capture, build, mutants"

$(VENV)/bin/python:
	@echo "==> Making a virtual environment in $(VENV) (10 seconds)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "This needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) --version 2>&1`. Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(COURSE): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "==> Installing the library and JupyterLab (2 to 5 minutes the first time, 2 GB of disk)"
	@$(PIP) install -c constraints.txt -e '.[course]'
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(COURSE)
	@echo "==> Installing the tools for testing (half a minute)"
	@$(PIP) install -c constraints.txt -e '.[course,dev]'
	@touch $@

lab: $(COURSE)
	@echo "==> Looking for the model's weights (fetched and converted once, about a minute)"
	@$(BIN)/specdec-lab models fetch
	@echo "==> Making your copies of the notebooks in work/ (what is there already stays as it is)"
	@$(BIN)/specdec-lab start
	@echo "==> Starting JupyterLab on the course (a few seconds; Ctrl-C ends it)"
	@$(BIN)/jupyter lab $(AS_ROOT) --ServerApp.root_dir='$(CURDIR)' \
		--LabApp.default_url=/lab/tree/work/00_start_here/00_start_here.ipynb $(LAB_ARGS)

grade: $(COURSE)
	@$(BIN)/specdec-lab grade

demo: $(COURSE)
	@echo "==> Looking for the model's weights (fetched and converted once, about a minute)"
	@$(BIN)/specdec-lab models fetch
	@echo "==> A small model drafts (20 seconds)"
	@$(BIN)/specdec-lab demo
	@echo
	@echo "==> A text to copy: what stood there before is the draft (20 seconds)"
	@$(BIN)/specdec-lab demo --drafter ngram --chat --prompt \
		"Repeat this text exactly as it is: Heat the oven to 200 degrees. Cut the onions into thin rings and fry them in butter until they are brown."

audit: $(COURSE)
	@$(BIN)/specdec-lab audit

test: $(DEV)
	@echo "==> Looking for the model's weights (fetched and converted once, about a minute)"
	@$(BIN)/specdec-lab models fetch
	@echo "==> Running all tests (14 to 20 minutes)"
	@$(BIN)/python -m pytest

test-quick: $(DEV)
	@echo "==> Running the tests that need no weights (two to four minutes)"
	@$(BIN)/python -m pytest -m 'not slow'

lint: $(DEV)
	@echo "==> Checking style and types (20 seconds)"
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

bench: $(COURSE)
	@$(BIN)/specdec-lab models fetch
	@echo "==> Measuring where speculation wins and loses here (3 to 4 minutes; leave the machine alone)"
	@$(BIN)/specdec-lab bench --quick

results: $(DEV)
	@$(BIN)/specdec-lab models fetch
	@echo "==> Measuring what is not in benchmarks/results/full yet (all: two hours; leave the machine alone)"
	@$(BIN)/specdec-lab bench --out benchmarks/results
	@echo "==> Measuring overhead against transformers (about 20 minutes)"
	@$(BIN)/python -m benchmarks.overhead
	@echo "==> Measuring what an exhaustive audit costs (about 4 minutes)"
	@$(BIN)/python -m benchmarks.audit
	@echo "==> Writing benchmarks/RESULTS.md and its pictures"
	@$(BIN)/python -m benchmarks.report

capture: $(DEV)
	@$(BIN)/specdec-lab models fetch
	@echo "==> Drawing the README's pictures from runs of the demo and of the audit, and running docs/views.py (a minute)"
	@$(BIN)/python -m docs.capture
	@echo "==> Filming the stream player (10 seconds; needs Chromium)"
	@$(BIN)/python -m docs.film

build: $(COURSE)
	@echo "==> Making the notebooks and answer keys from solutions/*/*.py (a minute for each)"
	@$(BIN)/specdec-lab build

mutants: $(COURSE)
	@echo "==> Trying the checks on wrong and right implementations (half a minute)"
	@$(BIN)/specdec-lab mutants

release: $(COURSE)
	@echo "==> Registering the assignments in gradebook.db and writing the learners' archive to dist/"
	@$(BIN)/specdec-lab release

grade-class: $(COURSE)
	@echo "==> Autograding submitted/ (up to a minute for each notebook)"
	@$(BIN)/specdec-lab grade-class

clean:
	@echo "==> Removing $(VENV) and caches; notebooks stay, and so do the weights in the user's cache"
	@rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
