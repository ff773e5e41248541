# make run    build bert-base: table, checks, ONNX, verification
# make test   lint, types, import contracts, and the quick tests
# make docs   the documentation, in build/site

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
# Each process begins with a stretch of consecutive tests, which share what their modules make.
PARALLEL := -n auto --maxprocesses 4 --dist worksteal
PYTEST := $(BIN)/python -m pytest
SOURCES := specs zoo exporters cli
# The GPU machine: the version of its Python and its name; the second by which a run of tests and benchmarks ends.
GPU_VERSION ?= 3.12
GPU_PYTHON ?= python3
GPU = PYTHONPATH=.gpu-kit/site:. $(GPU_PYTHON)
GPU_UNTIL := $(or $(UNTIL),$(shell expr $$(date +%s) + 480))

# The bytecode of tests is kept for the next run: a fifth of collecting them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test quick test-slow test-all test-costs test-browser clients test-clients engines test-engines runtimes matrix gpu-kit gpu lint types contracts format digests studio-editor docs bench peers clean

run: $(VENV)/.installed
	$(BIN)/zoo build bert-base

# The checks run beside the tests: each is one process, which leaves the other processors idle.
test: $(VENV)/.installed-test
	@$(MAKE) --no-print-directory -j 4 quick lint types contracts

quick: $(VENV)/.installed-test
	$(PYTEST) $(PARALLEL)

test-slow: $(VENV)/.installed-test
	$(PYTEST) $(PARALLEL) -m slow

test-all: test test-slow

# What an export costs beside the work that none can leave out: a minute and a half.
test-costs: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks cost

# The pages in Chromium, which the system has to have: Debian's packages chromium and chromium-driver, for one.
test-browser: $(VENV)/.installed-test .clients/transformers-js/node_modules
	@command -v chromium && command -v chromedriver || \
		{ echo "these tests need chromium and chromedriver: apt-get install chromium chromium-driver" >&2; exit 1; }
	$(PYTEST) $(PARALLEL) -m browser tests/browser

# The clients that load exports; those whose versions fit together share an environment. node comes from a Python package, too. In a
# browser WebGPU is that of Debian's package chromium.
clients: .clients/genai/.installed .clients/optimum/.installed .clients/transformers-js/node_modules

test-clients: $(VENV)/.installed-test clients
	$(PYTEST) $(PARALLEL) -m clients -rP tests/clients

# Engines that verify exports, each in its own environment; for the WebGPU provider the system has to have a Vulkan driver:
# Debian's packages libvulkan1 and chromium bring one in software.
ENGINES := openvino onnxruntime-1.20.1 onnxruntime-1.24.4 onnxruntime-1.29.0 webgpu wasm tensorrt-rtx
engines: $(ENGINES:%=.engines/%/.installed)

test-engines: $(VENV)/.installed-test engines
	$(PYTEST) $(PARALLEL) -m engines -rP tests/engines

# Every version of ONNX Runtime that exports may name as the first that runs them, and the tables from what engines show of files.
PORTABLE := 1.20.1 1.21.1 1.22.1 1.23.2 1.24.1 1.24.4 1.25.0 1.26.0 1.27.0 1.28.0 1.29.0 1.30.0 1.31.1
RUNTIMES := 1.15.1 1.16.3 1.17.3 1.18.1 1.19.2 $(PORTABLE)
runtimes: $(VENV)/.installed-test $(RUNTIMES:%=.engines/onnxruntime-%/.installed)
	ZOO_ENGINES=.engines $(BIN)/python -m tests.engines runtimes
	ZOO_ENGINES=.engines $(BIN)/python -m tests.engines stated

matrix: $(VENV)/.installed-test engines $(PORTABLE:%=.engines/onnxruntime-%/.installed)
	ZOO_ENGINES=.engines $(BIN)/python -m tests.engines matrix

# What a GPU machine without a network needs besides PyTorch, in parts of 48 MB: carry .gpu-kit there, in pieces if need be.
gpu-kit: | $(BIN)/python
	$(BIN)/python -m tests.gpu.kit collect .gpu-kit --python $(GPU_VERSION)

# On the GPU machine, with a python3 that has PyTorch.  Tests that passed and benchmarks that were measured are not run again,
# and none begins after eight minutes: run it until nothing is left.
gpu:
	$(GPU_PYTHON) -m tests.gpu.kit install .gpu-kit
	$(GPU) -m pytest -m gpu tests -p no:cacheprovider --resume .gpu-kit/passed --until $(GPU_UNTIL)
	UNTIL=$(GPU_UNTIL) $(GPU) -m benchmarks gpu

lint: $(VENV)/.installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.installed-test
	$(BIN)/mypy

contracts: $(VENV)/.installed-test
	$(BIN)/lint-imports

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Record the resolved presets, their structures and the digest of the JSON Schema, which tests compare with.
digests: $(VENV)/.installed-test
	$(BIN)/python -m tests.specs.digests
	$(BIN)/python docs/hooks/generate.py

# The editor of zoo studio, bundled from npm's packages with their licences; needs npm.
studio-editor: $(VENV)/.installed
	$(BIN)/python cli/studio/bundle/bundle.py

# Strict: a link to nowhere, a name that is gone, or anything loaded from another host fails.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html; with search: $(BIN)/python -m http.server -d build/site"

bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks

# What the benchmarks compare with, where it is installed.
peers: .peers/genai/.installed .peers/optimum/.installed .peers/mobius/.installed

clean:
	rm -rf $(VENV) .clients .engines .peers build dist *.egg-info

# The stamps say that the environment has what pyproject.toml and constraints.txt ask for.
# Compiling ahead keeps the first start of each command as quick as the later ones.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	$(BIN)/python -m compileall -q $(SOURCES)
	touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[test]'
	$(BIN)/python -m compileall -q $(SOURCES)
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[docs]'
	touch $@

.clients/%/.installed: tests/clients/%.txt constraints.txt | $(BIN)/python
	$(BIN)/python -m venv .clients/$*
	.clients/$*/bin/python -m pip install --disable-pip-version-check -c constraints.txt -r $<
	touch $@

# PyPI's builds of what vLLM reads images and sound with are for another torch.
.clients/vllm/.installed: tests/clients/vllm.txt constraints.txt | $(BIN)/python
	$(BIN)/python -m venv .clients/vllm
	.clients/vllm/bin/python -m pip install --disable-pip-version-check -c constraints.txt -r $<
	.clients/vllm/bin/python -m pip uninstall --disable-pip-version-check --yes torchvision torchaudio torchcodec
	touch $@

.engines/%/.installed: tests/engines/%.txt | $(BIN)/python
	$(BIN)/python -m venv .engines/$*
	.engines/$*/bin/python -m pip install --disable-pip-version-check -r $<
	touch $@

# What transformers.js runs in a browser.
.engines/wasm/.installed: tests/engines/wasm.txt | $(BIN)/python
	$(BIN)/python -m venv .engines/wasm
	.engines/wasm/bin/python -m pip install --disable-pip-version-check -r $<
	.engines/wasm/bin/npm install --ignore-scripts --no-audit --no-fund --no-package-lock --prefix .engines/wasm \
		onnxruntime-web@1.26.0-dev.20260416-b7804b056c
	touch $@

# Versions before 1.19 are built for NumPy 1.
.engines/onnxruntime-%/.installed: | $(BIN)/python
	$(BIN)/python -m venv .engines/onnxruntime-$*
	.engines/onnxruntime-$*/bin/python -m pip install --disable-pip-version-check onnxruntime==$* 'numpy<2.5'
	touch $@

.peers/%/.installed: benchmarks/peers/%.txt constraints.txt | $(BIN)/python
	$(BIN)/python -m venv .peers/$*
	.peers/$*/bin/python -m pip install --disable-pip-version-check -c constraints.txt -r $<
	touch $@

# Install scripts are left out: they would fetch libraries for GPUs from elsewhere.
.clients/transformers-js/node_modules: tests/clients/package.json .clients/transformers-js/.installed
	cp $< .clients/transformers-js/
	cd .clients/transformers-js && bin/npm install --ignore-scripts --no-audit --no-fund --no-package-lock
	touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "zoo needs Python 3.11 or later: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
