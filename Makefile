.DEFAULT_GOAL := help
SHELL := /bin/sh
TILL := ./till
RUN := .venv/bin/python -m
# Workers of `make test`, each with its own servers: about 2 GB of memory per worker.
WORKERS := 2

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: install ## start the shop, let simulated shoppers buy, run the lake, and show what happened
	@$(TILL) up
	@$(TILL) demo

up: install ## start Kafka, the schema registry, PostgreSQL and the shop
	@$(TILL) up

down: ## stop everything; the data stays
	@$(TILL) down

install: ## install what is missing: uv, Python packages, Java and the jars
	@infra/bootstrap

test: install ## run the unit, documentation, integration, end-to-end and fault tests, on servers of their own
	@$(RUN) pytest -n $(WORKERS) --no-loadscope-reorder

test-slow: install ## run the long tests of the lake
	@$(RUN) pytest -m slow

lint: install ## check format, lint and types, and change nothing
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy

format: install ## format the code, and fix what the linter can
	@$(RUN) ruff format .
	@$(RUN) ruff check --fix .

check: lint test ## check format, lint and types, and run the tests

bench: install ## measure speed, each figure next to its reference
	@$(TILL) bench

load: install ## run a short load test on a shop of its own and audit its books; report in .till/load
	@$(RUN) tests.load $(LOAD)

docs: install ## write the generated pages of docs/, and the line numbers of the tour
	@$(TILL) settings --markdown > docs/settings.md
	@$(RUN) infra.cli.reference.cli_page > docs/cli.md
	@$(RUN) infra.cli.reference.asyncapi > docs/asyncapi.json
	@$(TILL) schemas docs --examples tests/golden > docs/events.md
	@$(RUN) infra.cli.reference.tables_page > docs/tables.md
	@$(RUN) tests.docs.tour

clean: down ## stop everything and delete all local state
	@rm -rf .till

.PHONY: help demo up down install test test-slow lint format check bench load docs clean
