# `make demo` shows what gradekit does, `make test` proves that it works. Both do all their own set-up in .venv.

PYTHON ?= python3
# 2.13.0 by name, so that everybody tests the same torch; a machine that has torch for its GPU keeps the one it has
TORCH ?= torch==2.13.0
# Which build of torch: "cpu", "cu130", or "auto" for what suits this machine's driver
TORCH_BACKEND ?= auto
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# How many tests run at once: one more than there are cores, for most of them wait for processes now and then
WORKERS ?= $(shell expr $$(nproc) + 1)
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -p randomly $(if $(SEED),--randomly-seed=$(SEED))
RIGHT := solutions/softmax/solution.py
WRONG := solutions/softmax/wrong_no_mask.py

export TRITON_DEFAULT_FP_FUSION := 1
# The tests start hundreds of processes: gradekit is compiled once, whatever the environment says
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-slow matrix dist lint docs verify mutants tutoring thorough fuzz kills bench test-gpu clean

# An environment in .venv; without a GPU, with the CPU build of torch, which is a tenth of the size
setup: $(READY)

demo: $(READY)
	@echo 'A right submission:  gradekit check $(RIGHT)'
	@$(BIN)/gradekit check $(RIGHT)
	@echo
	@echo 'A wrong submission, for which gradekit exits with 1:  gradekit check $(WRONG)'
	@$(BIN)/gradekit check $(WRONG); test $$? -eq 1

# On every core and in a random order, which `make test SEED=...` repeats; how many at once: WORKERS=...; other samples of long lists: TURN=1
test: $(READY)
	$(PYTEST)

# More of the same: every right submission, every trivial result, clusters that lose their parts; whole lists in place of samples
test-slow: $(READY)
	$(PYTEST) -m "slow or sample"

# The tests on the oldest and the newest versions that are supported, on each Python that is installed
matrix: $(READY)
	TORCH_BACKEND=cpu $(BIN)/nox

# What is published: dist/*.whl and dist/*.tar.gz
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy

# What follows takes longer than a change should wait for.

docs: $(READY)
	$(BIN)/pip install --quiet --editable '.[docs]'
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python tools/check_links.py docs/_build/html
	@echo 'docs/_build/html/index.html'

verify: $(READY)
	$(BIN)/gradekit verify

# Small edits of each solution, which the assignment's checks must find; what is known in mutants/ is not graded again
mutants: $(READY)
	$(BIN)/gradekit verify --mutants

# What a report says of each beginner's mistake, held against tests/repair/table.csv: half an hour on one core
tutoring: $(READY)
	$(BIN)/python benchmarks/tutoring.py --quick --first

# 1,000 examples for each property of each solution
thorough: $(READY)
	@for solution in solutions/*/solution.py; do \
	    id=$$(basename $$(dirname $$solution)); \
	    $(BIN)/python -m pytest -q assignments/$$id --submission $$solution --gradekit-profile thorough \
	    || exit 1; done

# A class whose grading is killed at a hundred moments, and continued
kills: $(READY)
	GRADEKIT_KILLS=100 $(BIN)/python -m pytest -q -n auto -m slow tests/batch/test_class.py -k kills

# A minute of nearly right inputs for each reader of what strangers send
fuzz: $(READY)
	GRADEKIT_FUZZ_SECONDS=60 $(BIN)/python -m pytest -q -s tests/fuzz

bench: $(READY)
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/check.py

# What needs a card: the worker, the clock, speed as it is graded, and the engine against the card
test-gpu: $(READY)
	$(BIN)/python -m pytest tests/gpu tests/inspector tests/engine/test_against_gpu.py

# Where the machine's Python has a torch that knows CUDA, that one is used: replacing it would break the GPU. It may lie in a
# virtual environment itself, which --system-site-packages alone does not show: hence the file `machine.pth`.
# The wheel of axe-playwright-python carries axe-core, which the tests of the pages run: without Playwright, which it names.
# Where pip is told of a place of its own for packages, torch comes from there; else uv knows where torch's builds are.
$(READY): pyproject.toml
	@if $(PYTHON) -c 'import torch; assert torch.version.cuda' 2>/dev/null; \
	then $(PYTHON) -m venv --system-site-packages $(VENV) && \
	    $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	        > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/machine.pth"; \
	else $(PYTHON) -m venv $(VENV) && \
	    if $(BIN)/pip config list | grep -Eq 'find-links|index-url'; \
	    then $(BIN)/pip install --quiet '$(TORCH)'; \
	    else $(BIN)/pip install --quiet uv && \
	        $(BIN)/uv pip install --quiet --python $(BIN)/python --torch-backend=$(TORCH_BACKEND) '$(TORCH)'; fi; fi
	$(BIN)/pip install --quiet --editable '.[dev]'
	$(BIN)/pip install --quiet --no-deps axe-playwright-python
	@tools/install_chromium || echo 'No Chromium: the tests of the pages in a browser will be skipped.'
	@touch $(READY)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
