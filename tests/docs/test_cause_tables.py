"""docs/causes.md is what the causes say."""

from __future__ import annotations

import pytest

from tests.docs.cause_tables import PAGE, made_from


def test_the_tables_are_those_of_the_causes() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == made_from(page), "run `python -m tests.docs.cause_tables`"


def test_a_row_that_is_out_of_date_is_written_again() -> None:
    page = PAGE.read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `dead_relu` |"))

    assert made_from(page.replace(row, "| `dead_relu` | once | error | more |")) == page
    assert made_from(page.replace(row + "\n", "")) == page


def test_a_family_without_a_heading_is_named() -> None:
    page = PAGE.read_text(encoding="utf-8").replace("## The tape\n", "")

    with pytest.raises(AssertionError, match="The tape"):
        made_from(page)
