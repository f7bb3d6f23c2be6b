"""The TypeScript types of the page are those of the Python records."""

from __future__ import annotations

from pathlib import Path

from tb_gradflow.record.typescript import typescript

RECORD_TS = Path(__file__).parents[2] / "frontend" / "src" / "record.ts"


def test_the_page_has_the_types_of_today() -> None:
    """Mended by `python -m tb_gradflow.record.typescript > frontend/src/record.ts`."""
    assert RECORD_TS.read_text() == typescript()


def test_a_record_becomes_an_interface() -> None:
    text = typescript()

    assert "export interface Tensor {" in text
    assert "  readonly shape: readonly number[] | null;" in text
    assert "  readonly passes: Passes;" in text
    assert '  readonly unconnected: "none" | "zero";' in text


def test_a_choice_of_words_is_named_once() -> None:
    text = typescript()

    assert text.count("export type Passes =") == 1
    assert '  | "not_differentiable"' in text


def test_records_of_raw_bytes_stay_out() -> None:
    text = typescript()

    assert "interface Chunk " not in text
    assert "interface Run " not in text
    assert "interface Session " in text
