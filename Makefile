.DEFAULT_GOAL := help
SHELL := /bin/sh
TILL := .venv/bin/till
RUN := .venv/bin/python -m

help: ## what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: ## install what is missing: uv, Python packages, Java, jars
	@infra/bootstrap

up: install ## start Kafka, the schema registry, PostgreSQL and the shop
	@$(TILL) up

demo: up ## the same, then let simulated shoppers buy, run the lake, and show what happened
	@$(TILL) demo

down: ## stop them; the data stays
	@$(TILL) down

test: install ## unit, integration, end-to-end and fault tests, on real servers of their own
	@$(RUN) pytest

test-slow: install ## the long tests of the lake: whole fixtures of Spark, deaths of its driver, the demo with the lake
	@$(RUN) pytest -m slow

lint: install ## format, lint and types, changing nothing
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy

format: install ## format the code and mend what the linter can
	@$(RUN) ruff format .
	@$(RUN) ruff check --fix .

check: lint test ## format, lint, types and tests

bench: install ## every figure beside its reference
	@$(TILL) bench

load: install ## a short load test on a shop of its own, its books checked; report in .till/load
	@$(RUN) tests.load $(LOAD)

docs: install ## write the generated pages of docs/ again
	@$(TILL) settings --markdown > docs/settings.md
	@$(RUN) infra.cli.reference > docs/cli.md
	@$(RUN) infra.cli.asyncapi > docs/asyncapi.json
	@$(TILL) schemas docs > docs/events.md

clean: down ## stop everything and delete all local state
	@rm -rf .till

.PHONY: help install up demo down test test-slow lint format check bench load docs clean
