"""The tour tells the truth: its links lead to the lines that it quotes, and its first program runs."""

import subprocess
import sys

import pytest

from tests.docs.markdown import ROOT, page
from tests.docs.tour import Stop, stops

PAGE = page("docs/tour.md")
STOPS = list(stops(PAGE.text))


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: f"{stop.file}:{stop.line}")
def test_a_stop_quotes_the_lines_that_it_links_to(stop: Stop) -> None:
    assert stop.here == stop.quote, "Move the line numbers with: python -m tests.docs.tour"


def test_the_tour_has_fifteen_stops_and_every_link_to_a_line_is_one() -> None:
    headings = [line for line in PAGE.text.splitlines() if line.startswith("## Stop ")]
    assert [heading.split()[2].rstrip(".") for heading in headings] == [str(n) for n in range(16)]
    assert len(STOPS) == PAGE.text.count("#L")
    assert len(STOPS) >= 15


def test_a_decider_runs_in_memory_in_a_few_lines() -> None:
    """The program of stop 0 needs no server and no package, and prints what the page says."""
    program, printed = (block.text for block in PAGE.blocks[:2])
    without_packages = [sys.executable, "-S", "-c", program]
    ran = subprocess.run(without_packages, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == printed
    assert len(program.splitlines()) <= 12


def test_a_quote_that_is_elsewhere_is_seen() -> None:
    elsewhere = Stop("Makefile", 2, "SHELL := /bin/bash")
    assert elsewhere.here != elsewhere.quote
