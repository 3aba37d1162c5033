.DEFAULT_GOAL := help
.PHONY: help run test reset

# A Python to use instead of the first fitting one on the path.
PYTHON ?=
export PYTHON

find_python = python="$$(sh chatsvc/embedded/find_python.sh)" || exit 1
bootstrap = "$$python" chatsvc/embedded/bootstrap.py

help:
	@echo 'make run             start everything here: demo shop, widget, dashboard, admin'
	@echo 'make run LLM=local   the same, answering from a llama.cpp server on this machine'
	@echo 'make test            lint, types and every test; make test STAGES="pure db" for a part'
	@echo 'make reset           clear the data of this checkout'

run:
	@$(find_python); $(bootstrap) requirements.txt $(if $(filter local,$(LLM)),--no-deps=requirements-local-llm.txt) \
	    && exec .venv/bin/python -m chatsvc.embedded.up $(if $(LLM),--llm $(LLM))

test:
	@$(find_python); $(bootstrap) requirements-dev.txt && exec .venv/bin/python -m tests.run $(STAGES)

reset:
	@$(find_python); $(bootstrap) requirements.txt && exec .venv/bin/python -m chatsvc.embedded.reset
