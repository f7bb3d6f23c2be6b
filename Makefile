# make demo    trains the demonstrations and opens TensorBoard on their logs
# make check   lint, types, and the tests that need no TensorFlow and no browser: under two minutes
# make coverage the same tests, measured: fails if they run less than 90 % of the branches of a layer
# make test    every check, as CI runs it
# make versions the core of the recorder's tests under the oldest and the newest versions; `make test` includes it, but
#              for the versions in .venv
# make versions TENSORFLOW=2.18.1 KERAS=3.6.0    more tests under the given versions, also with PYTHON=python3.x
#
# On a machine with Python, Node 20 and make, they set up what they need: a virtual environment in .venv, the page of
# the plugin, and Chromium for `make test`. They do not change what is already there.

PYTHON ?= python3
BIN := .venv/bin
# Tests spend time waiting for TensorFlow, browsers and servers, so use two workers more than there are cores, but at
# most four. tests/conftest.py sets the order of the test files.
WORKERS := $(shell $(PYTHON) -c 'import os; print(min(4, 2 + (os.cpu_count() or 1)))')
SOURCES := tb_gradflow tests benchmarks hatch_build.py
NODE_MODULES := frontend/node_modules/.package-lock.json
# These load no TensorFlow, start no TensorBoard and open no browser. The deselected test takes long.
PURE := tests/record tests/analyse tests/store tests/serve tests/logs tests/recordings tests/test_layers.py \
	tests/hostile/test_limits.py tests/hostile/test_names.py tests/gradcheck/test_numpy_functions.py \
	tests/gradcheck/test_right_gradients.py tests/gradcheck/test_verdicts.py tests/gradcheck/test_what_is_not_known.py \
	--ignore tests/serve/test_tensorboard.py --ignore tests/serve/test_privacy.py --ignore tests/serve/test_pytest_plugin.py \
	--ignore tests/serve/test_view.py \
	--deselect tests/gradcheck/test_numpy_functions.py::test_many_numbers_are_checked_by_some_directions

# If it is set, every Python process that the tests start compiles the package and the tests again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check coverage test tests static versions page chromium clean
.DELETE_ON_ERROR:

demo: .venv/for-demo page
	$(BIN)/tb-gradflow demo

check: static
	$(BIN)/python -m pytest -q -n 2 $(PURE)

coverage: .venv/for-test page
	@mkdir -p build/coverage
	COVERAGE_FILE=build/coverage/data $(BIN)/python -m coverage run --branch --source tb_gradflow \
		-m pytest -q -p tests.analyse.contexts $(PURE)
	@$(BIN)/python -m tests.coverage_of_layers build/coverage/data

# Other versions are downloaded and tested at the same time.
test: static chromium
	@$(MAKE) --no-print-directory --jobs 2 tests versions TENSORFLOW= KERAS= TESTED=$(BIN)/python

tests:
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

static: .venv/for-test page
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	npm --prefix frontend run check
	npm --prefix frontend test

versions:
	$(PYTHON) -m benchmarks.versions $(TENSORFLOW) $(if $(KERAS),--keras $(KERAS)) $(if $(TESTED),--tested $(TESTED)) --directory .venv/versions

page: .venv/for-demo $(NODE_MODULES)
	@$(BIN)/python hatch_build.py

clean:
	rm -rf .venv build dist frontend/node_modules tb_gradflow/serve/static

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "Python 3.10 or newer is needed, found $$($(PYTHON) --version): set PYTHON=python3.x"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

$(NODE_MODULES): frontend/package-lock.json
	@command -v npm >/dev/null \
		|| { echo "Building the page needs Node 20 or newer, but npm was not found: see https://nodejs.org"; exit 1; }
	npm --prefix frontend ci --ignore-scripts --no-audit --no-fund
	@touch $@

.venv/for-demo: pyproject.toml $(BIN)/python $(NODE_MODULES)
	$(BIN)/python -m pip install --quiet --editable '.[tensorflow-cpu]' hatchling
	@touch $@

.venv/for-test: .venv/for-demo
	$(BIN)/python -m pip install --quiet --editable '.[tensorflow-cpu,dev]'
	@# Without its dependencies: it requires the package `tensorflow`, which would overwrite tensorflow-cpu.
	$(BIN)/python -m pip install --quiet --no-deps tf_keras
	@touch $@

chromium:
	@command -v chromium || command -v chromium-browser || command -v google-chrome || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; \
		else \
			echo "The browser tests need Chromium: install it (on Debian, as root: apt-get install chromium)"; exit 1; \
		fi; }
