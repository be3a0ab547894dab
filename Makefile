# `make` alone lists a reader's and an instructor's commands, `make maintain` the others.
# Plain enough for the make 3.81 that macOS ships.

ARGS ?=
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/ready
TESTS := $(VENV)/tests
HUB := $(VENV)/hub
CARDS := $(VENV)/cards

# The first Python found here that the course supports; `make lab PYTHON=...` names another.
SUPPORTED := import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c '$(SUPPORTED)' 2>/dev/null && echo "$$p" && break; done)

# Prediction and measurement are compared digit by digit, so tests run and outputs are stored
# with one thread of a CPU, whatever else the machine has.
ONE_CPU_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 CUDA_VISIBLE_DEVICES= HIP_VISIBLE_DEVICES=
# `make lab LANG=zh_CN` shows the course in Chinese. In the environment, LANG is the system's language.
ifeq ($(origin LANG),command line)
export COURSE_LANG := $(LANG)
export PYTHONUTF8 := 1
endif
# Tests start a hundred kernels, and without bytecode files each would compile the course again.
unexport PYTHONDONTWRITEBYTECODE
# JupyterLab refuses to start as root without this option, and containers often run as root.
ALLOW_ROOT = $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help maintain
.PHONY: lab anew results present slides assignment key grade hub site napkin cards
.PHONY: test thorough explore lint fuzz samepages elsewhere versions beside without-stage in-anki gpu
.PHONY: outputs pictures minutes seconds where ledger glossary claims translations
.PHONY: bench latency students record recording recordings reported
.PHONY: colab colab-proof constraints clean space-at-home

help:
	@echo 'make lab          open your own copies of the notebooks in JupyterLab, and bring them up to date'
	@echo '                  (make lab ARGS="--no-browser" passes options on)'
	@echo 'make results      bring the course'"'"'s results into your copy, if you only want to read (make results NB=04)'
	@echo 'make anew         begin an exercise anew (make anew NB=04 EXERCISE=2), or a notebook (make anew NB=04)'
	@echo
	@echo 'For those who teach; notebooks/INSTRUCTORS.md says more:'
	@echo 'make present      show a notebook to an audience, large and with working labs (make present NB=04);'
	@echo '                  ROOM=1 lets the room guess by phone, CUT=25 shows what a lecture of 25 minutes has of it,'
	@echo '                  RECALL=1 asks three questions of earlier notebooks first,'
	@echo '                  ARGS=--results shows the stored results from the beginning'
	@echo 'make slides       make a deck of each notebook, one HTML file that needs no network, in slides/ (CUT=25 as above)'
	@echo 'make assignment   write what a class gets, a notebook and the course without solutions (make assignment NB=04)'
	@echo 'make key          write the key for assistants: solutions, points, known mistakes (make key NB=04)'
	@echo 'make grade        judge the notebooks that a class handed in (make grade FOLDER=handed_in SEED=7)'
	@echo
	@echo 'make test         run every test, and every notebook against its stored outputs'
	@echo 'make maintain     list the other commands, which host, change, measure and release the course'
	@echo
	@echo 'Whatever is missing is installed first, into .venv.'

# The list is CONTRIBUTING's table, so that there is only one list.
maintain:
	@test -f CONTRIBUTING.md || { echo 'The commands for those who maintain the course are not in this copy.'; exit 1; }
	@awk -F ' *[|] *' '/^[|] `make / { gsub(/`/, ""); printf "%-20s%s\n", $$2, $$3 } \
		/^[|] [*][*]/ { gsub(/[*]/, ""); printf "\n%s:\n", $$2 }' CONTRIBUTING.md

lab: $(READY)
	$(RUN) -m course_utils.stage.workspace --ip=127.0.0.1 $(ALLOW_ROOT) $(ARGS)

anew: $(READY)
	@$(RUN) -m course_utils.stage.workspace.commands anew "$$NB" "$$EXERCISE"

results: $(READY)
	@$(RUN) -m course_utils.stage.workspace.commands results "$$NB"

assignment: $(READY)
	@$(RUN) -m course_utils.stage.workspace.commands assignment "$$NB"

key: $(READY)
	@$(RUN) -m course_utils.stage.workspace.commands key "$$NB"

present: $(READY)
	@ROOM="$$ROOM" CUT="$$CUT" RECALL="$$RECALL" $(RUN) -m course_utils.stage.present "$$NB" $(ALLOW_ROOT) $(ARGS)

hub: $(HUB)
	@$(RUN) -m course_utils.stage.hub $(ARGS)

napkin: $(READY)
	@SEEDS="$$SEEDS" $(RUN) -m course_utils.stage.recall.napkin

cards: $(CARDS)
	@$(RUN) -m course_utils.stage.recall.cards

slides: $(READY)
	CUT="$$CUT" $(RUN) -m course_utils.stage.slides $(ARGS)

grade: $(READY)
	@$(ONE_CPU_THREAD) $(RUN) -m course_utils.stage.grading

site: $(READY)
	@REPO="$$REPO" $(RUN) -m course_utils.stage.pages

pictures: $(TESTS)
	@$(RUN) -m tests.tools.pictures

samepages: $(TESTS)
	PAGE_STATES=300 $(ONE_CPU_THREAD) $(RUN) -m pytest --numprocesses=0 tests/stage/test_pages.py -k pyodide

test: $(TESTS) $(HUB) $(CARDS)
	$(ONE_CPU_THREAD) $(RUN) -m pytest $(ARGS)

thorough: $(TESTS) $(HUB)
	$(ONE_CPU_THREAD) $(RUN) -m pytest -m thorough $(ARGS)

explore: $(TESTS)
	@$(ONE_CPU_THREAD) $(RUN) -m tests.tools.explore $(ARGS)

minutes: $(TESTS)
	@$(RUN) -m tests.tools.minutes

seconds: $(TESTS)
	@$(RUN) -m tests.tools.versions here

lint: $(TESTS)
	$(RUN) -m ruff check . && $(RUN) -m ruff format --check .

outputs: $(TESTS)
	$(ONE_CPU_THREAD) $(RUN) -m tests.tools.outputs $(ARGS)

where: $(TESTS)
	@$(RUN) -m tests.tools.where "$$NAME"

ledger: $(TESTS)
	@$(RUN) -m tests.tools.ledger

glossary: $(TESTS)
	$(RUN) -m tests.tools.glossary

claims: $(TESTS)
	@$(RUN) -m tests.tools.claims

translations: $(READY)
	@$(RUN) -m course_utils.stage.translations $(if $(findstring command,$(origin LANGUAGE)),"$(LANGUAGE)")

bench: $(TESTS)
	$(RUN) -m tests.tools.bench $(ARGS)

latency: $(TESTS)
	$(RUN) -m tests.tools.latency $(ARGS)

fuzz: $(TESTS)
	$(ONE_CPU_THREAD) $(RUN) -m tests.tools.fuzz $(ARGS)

students: $(TESTS) $(HUB)
	$(ONE_CPU_THREAD) $(RUN) -m tests.tools.students $(ARGS)

elsewhere: $(TESTS)
	$(RUN) -m tests.tools.elsewhere $(ARGS)

versions: $(TESTS)
	@$(RUN) -m tests.tools.versions $(ARGS)

beside: $(TESTS)
	@$(ONE_CPU_THREAD) $(RUN) -m tests.tools.beside_transformers $(ARGS)

in-anki: $(TESTS) $(CARDS)
	@$(RUN) -m tests.tools.in_anki

without-stage: $(TESTS) $(HUB)
	@$(ONE_CPU_THREAD) $(RUN) -m tests.tools.without_stage

colab: $(TESTS)
	@$(RUN) -m tests.tools.colab "$$REPO" "$$TAG" "$$LINKS"

colab-proof: $(TESTS)
	@$(RUN) -m tests.tools.colab_proof

record: $(READY)
	$(RUN) -m course_utils.chapters.flops.new_recording

recording: $(TESTS)
	@$(RUN) -m tests.tools.review "$$FILE"

recordings: $(TESTS)
	@$(RUN) -m tests.tools.recordings

reported: $(TESTS)
	@$(RUN) -m tests.tools.reported "$$FILE"

gpu: $(TESTS)
	@$(RUN) -m tests.tools.on_gpu $(ARGS)

constraints: $(READY)
	$(RUN) -m pip install --quiet uv
	$(RUN) -m uv pip compile --all-extras --universal --no-header --no-annotate --quiet \
		--upgrade pyproject.toml -o constraints.txt

# Whatever starts kernels needs a home folder, where Jupyter keeps sockets, settings and history.
lab present hub test thorough seconds outputs bench latency students versions without-stage colab-proof: space-at-home
space-at-home:
	@test -z "$$HOME" || ( spacer="$$HOME/.space-for-jupyter"; trap 'rm -f "$$spacer"' EXIT; \
		mkdir -p "$$HOME" && head -c 500000 /dev/zero > "$$spacer" ) 2>/dev/null || { \
		printf '%s\n' "$$NEED_HOME" >&2; exit 1; }

clean:
	rm -rf $(VENV) .versions slides site colab gpu napkin cards .pytest_cache .ruff_cache .hypothesis
	find course_utils tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is ready when the stamp is newer than both lists and names this very folder. An
# environment that was moved or copied is full of paths that lead elsewhere, so it is made anew.
HERE := $(shell test "`cat $(READY) 2>/dev/null`" = "`pwd -P`" && $(RUN) -c '' 2>/dev/null && echo yes)
ifneq ($(HERE),yes)
.PHONY: $(READY)
endif

# JupyterLab reads the extension's files from the environment, so it is renewed when they change.
KEYS := course_utils/stage/workspace/keys
$(READY): pyproject.toml constraints.txt $(wildcard $(KEYS)/*.json $(KEYS)/static/*.js)
	@"$(PYTHON)" -c '$(SUPPORTED)' 2>/dev/null || { printf '%s\n' "$$NEED_PYTHON" >&2; exit 1; }
	@test -w . || { printf '%s\n' "$$NEED_FOLDER" >&2; exit 1; }
	@df -Pk . | awk 'NR == 2 { exit $$4 < $(if $(HERE),500000,3000000) }' || { printf '%s\n' "$$NEED_DISK" >&2; exit 1; }
	@echo '$(if $(HERE),Bringing $(VENV) up to date.,Installing into $(VENV); a few minutes, once.)'
	@$(if $(HERE),:,"$(PYTHON)" -m venv --clear $(VENV)) || { rm -rf $(VENV); printf '%s\n' "$$NEED_VENV" >&2; exit 1; }
	@$(call install,.)
	@mkdir -p $(VENV)/etc/jupyter/labconfig
	@echo '{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}' \
		> $(VENV)/etc/jupyter/labconfig/page_config.json
	@pwd -P > $@

# Tests and the maintainers' commands also need pytest, a browser's driver and a linter.
$(TESTS): $(READY)
	@echo 'Adding what tests need, once; this needs a network.'
	@$(call install,.[test])
	@touch $@

# `make hub` and its test also need a JupyterHub and its proxy.
$(HUB): $(READY)
	@echo 'Adding a JupyterHub, once; this needs a network.'
	@$(call install,.[hub])
	@touch $@

# `make cards` and its test also need what writes a deck for Anki.
$(CARDS): $(READY)
	@echo 'Adding what writes a deck of cards, once; this needs a network.'
	@$(call install,.[cards])
	@touch $@

define install
$(RUN) -m pip install --disable-pip-version-check --no-input $(if $(HERE),--quiet) \
		--log $(VENV)/pip.log --constraint constraints.txt --editable '$(1)' || { \
		if df -Pk . | awk 'NR == 2 { exit $$4 > 500000 }' || grep -q 'No space left' $(VENV)/pip.log; \
		then printf '%s\n' "$$NEED_DISK" >&2; \
		elif grep -qiE 'connection|resolution|timed out|unreachable' $(VENV)/pip.log; \
		then printf '%s\n' "$$NEED_NETWORK" >&2; \
		else printf '%s\n' "$$PIP_FAILED" >&2; fi; exit 1; }
endef

define NEED_PYTHON

This course needs Python 3.11, 3.12, 3.13 or 3.14, and $(if $(PYTHON),$(PYTHON) is none of them,found none of them here).
  macOS:          brew install python@3.13
  Debian, Ubuntu: sudo apt install python3 python3-venv
  elsewhere:      https://www.python.org/downloads/
Then run this again, or name one: make lab PYTHON=/path/to/python3.13
endef
define NEED_HOME

Jupyter keeps its settings in your home folder, and $(HOME) is full, or you may not write there.
Make some room in it, or lend Jupyter another folder: make $(MAKECMDGOALS) HOME=/tmp/home
endef
define NEED_FOLDER

The course installs itself into this folder, and you may not write here.
Copy the folder to a place of your own, and run this again there.
endef
define NEED_VENV

Python is here, but it could not make a virtual environment (its own message stands above).
On Debian and Ubuntu that part is a package of its own: sudo apt install python3-venv
Then run this again.
endef
define NEED_DISK

The disk is too full: the course needs 3 GB free in this folder, and on Linux with
an NVIDIA GPU some 8 GB. Free some space, or move this folder to another disk, and run this again.
endef
define NEED_NETWORK

The packages could not be fetched: this machine does not reach the package index.
The first run needs a network, later ones do not. Check the connection (behind a proxy: set HTTPS_PROXY),
and run this again.
endef
define PIP_FAILED

The installation did not finish; what pip said stands above, and in full in $(VENV)/pip.log.
Mend that, and run this again.
endef
export NEED_PYTHON NEED_HOME NEED_FOLDER NEED_VENV NEED_DISK NEED_NETWORK PIP_FAILED
