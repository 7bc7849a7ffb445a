# The two commands: `make run` opens mpstui, `make test` proves it. Both set everything up first.
# Written for GNU make 3.81, the one that macOS ships.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := -m pip install --quiet --disable-pip-version-check --no-compile
# The only one without a hash: its build depends on the machine and on where pip looks.
TORCH  := torch==2.13.0
AUDIT  := .venv-audit
PEERS  := .venv-integrations
# What the callbacks are tried on. PyPI's torchvision, which ultralytics needs, works only with PyPI's build of torch, not with
# another one (2.13.0+cpu), so exactly that build is asked for. On Linux it brings CUDA, 7 GB in all.
PEER_TORCH := torch===2.13.0
FRAMEWORKS := transformers accelerate lightning keras ultralytics stable-baselines3 fastai pytorch-ignite wandb mlflow trackio tensorboard

.PHONY: run demo test lint types contracts unit sshd setup requirements torch needed-by-torch bytecode clean bench bench-agent bench-reporting bench-reading bench-scale bench-start bench-train faults cluster fuzz audit pictures integrations

run: setup
	$(BIN)/mpstui

demo: setup
	$(BIN)/mpstui demo

setup: $(STAMP)

# Byte code is made only for what a screen loads; most of torch and what comes with it is never loaded.
$(STAMP): pyproject.toml constraints.txt Makefile mpstui/__init__.py
	@$(PYTHON) -c 'import sys; sys.exit("mpstui needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 run") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(MAKE) --no-print-directory -j 2 requirements torch
	@$(MAKE) --no-print-directory -j 2 needed-by-torch bytecode
	@touch $(STAMP)

requirements:
	$(BIN)/python $(PIP) --require-hashes -r constraints.txt
	$(BIN)/python $(PIP) --no-deps --no-build-isolation -e .

# One core unpacks torch while another one installs everything else; both would install what both need, so torch comes alone.
torch:
	$(BIN)/python $(PIP) --no-deps $(TORCH)

needed-by-torch:
	$(BIN)/python $(PIP) $(TORCH)

bytecode:
	-@$(BIN)/python -m compileall -qq mpstui trainer $(VENV)/lib/python*/site-packages/textual $(VENV)/lib/python*/site-packages/rich

# One core checks types and contracts while the others begin with the tests.
test: lint
	@$(MAKE) --no-print-directory -j 3 contracts types unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports

# Six workers on two cores: tests of supervisors and screens wait for processes more than they compute. In a new clone one
# process first makes the byte code: without it, each worker and each program it starts would compile everything again.
unit: setup sshd
	@test -d tests/__pycache__ || PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only > /dev/null 2>&1 || true
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 6 --dist worksteal

# Tests of other machines start an sshd of their own. It is installed if we are root (RUNLEVEL: without starting the service);
# without one, these tests are skipped.
sshd:
	@command -v sshd > /dev/null || test -x /usr/sbin/sshd || test "$$(id -u)" != 0 || ! command -v apt-get > /dev/null || \
	{ apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qq -y openssh-server; } > /dev/null 2>&1 || true

# A thousand randomised accidents to real processes; SEED= repeats a run.
faults: setup
	$(BIN)/python -m tests.supervisor.faults --runs $(or $(RUNS),1000) $(if $(SEED),--seed $(SEED))

# Trainings on a real Slurm of two nodes on this machine, some ten minutes; skipped where its packages are not installed.
cluster: setup
	MPSTUI_TEST_CLUSTER=1 $(BIN)/python -m pytest -n 0 -rs tests/cluster $(CLUSTER)

# The callbacks of mpstui/integrations inside the real frameworks, and what export writes, read back by the real trackers, in an
# environment of their own: some twenty minutes, and the download of 7 GB. PEER_TORCH names another build of torch, if pip finds
# its torchvision too.
integrations: setup
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(PIP) '$(PEER_TORCH)' $(FRAMEWORKS)
	@$(PEERS)/bin/python -c 'import torchvision' || { echo "This torchvision does not belong to this torch: name a build that has one, make integrations PEER_TORCH=..." >&2; exit 1; }
	MPSTUI_INTEGRATIONS=$(PEERS)/bin/python $(BIN)/python -m pytest -n 0 -rs tests/integrations

# A minute of damage to records, and one of damage to everything else that is read; SEED= repeats a run.
fuzz: setup
	$(BIN)/python -m tests.fuzz records --seconds $(or $(FUZZ_SECONDS),60) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.fuzz bytes --seconds $(or $(FUZZ_SECONDS),60) $(if $(SEED),--seed $(SEED))

# Known vulnerabilities in what we install, and what bandit finds in our code. Fails if there are findings, or if a tool misses
# what is known to be bad; says so if the advisories cannot be reached. The tools live in an environment of their own.
# ADVISORIES names a service with OSV's interface, to be asked instead of the package index.
audit:
	test -x $(AUDIT)/bin/pip-audit || { $(PYTHON) -m venv $(AUDIT) && $(AUDIT)/bin/python $(PIP) pip-audit==2.10.1 bandit==1.9.4; }
	$(AUDIT)/bin/python scripts/audit.py $(ADVISORIES)

# Ratios, measured in one run. HARNESS names a folder with peer_table.py, to compare with other programs.
bench: setup
	$(BIN)/python -m tests.bench.following
	$(if $(HARNESS),$(BIN)/python -m tests.bench.peers $(HARNESS) $(BENCH))

# Compared with the trackers in .venv-integrations, after `make integrations`.
bench-reporting:
	$(PEERS)/bin/python -m tests.bench.reporting $(BENCH)

bench-agent: setup
	$(BIN)/python -m tests.bench.agent_cost $(BENCH)

# The worst that a file can hold, through every reader; BENCH names readers and cases.
bench-reading: setup
	$(BIN)/python -m tests.bench.worst_reading $(BENCH)

bench-train: setup
	$(BIN)/python -m tests.bench.train $(BENCH)

# Compared with a bare Textual program (Linux): from the call to the first answered key, and the cost while no key is pressed.
bench-start: setup
	$(BIN)/python -m tests.bench.bare_textual $(BENCH)

# Two hundred live runs on this machine (Linux): memory, start and idle time of supervisors, the list's share of a core.
bench-scale: setup
	$(BIN)/python -m tests.bench.scale $(BENCH)

# The README's pictures, drawn by the real screen.
pictures: setup
	$(BIN)/python scripts/picture.py docs/pictures

clean:
	rm -rf $(VENV) $(AUDIT) $(PEERS) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
