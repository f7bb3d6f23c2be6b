"""What is left out of a page, and what never is."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tb_gradflow
from tb_gradflow.cli.main import main
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.serve.reports import excerpt as excerpt_module
from tb_gradflow.serve.reports import page as page_module
from tb_gradflow.serve.reports.excerpt import Excerpt, excerpt, packed_floats, rounded
from tb_gradflow.store.layout import unpack_json
from tb_gradflow.version import VERSION
from tests.serve.large import write_large
from tests.store.samples import open_writer, step, trace, write_log

Floats = npt.NDArray[np.float32]


def excerpt_of(directory: Path, room: int, step: int | None = None) -> Excerpt:
    return excerpt(tb_gradflow.open_log(directory).recorded, "run", room, step)


def reports_in(content: Excerpt) -> dict[int, list[str]]:
    """Step -> causes of its findings."""
    packed = unpack_json(base64.b64decode(content.content["reports"]))
    assert isinstance(packed, dict)
    return {each["step"]: [packed["findings"][at]["cause"] for at in each["findings"]] for each in packed["reports"]}


def unpacked(data: bytes, shape: tuple[int, ...]) -> Floats:
    """The slow, obvious way back."""
    planes = np.frombuffer(gzip.decompress(data), np.uint8).reshape(4, -1)
    big_endian = np.ascontiguousarray(planes.T).view(">f4")
    return np.asarray(big_endian.reshape(shape[::-1]).transpose(2, 1, 0), np.float32)


# How long a machine takes is no matter of this test.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(width=32), min_size=1, max_size=8))
def test_numbers_come_back_to_three_figures_and_what_is_not_finite_as_it_was(values: list[float]) -> None:
    numbers = np.zeros((2, len(values), 6), np.float32)
    numbers[0, :, 0] = numbers[1, :, 4] = values

    back = unpacked(packed_floats(numbers), numbers.shape)

    np.testing.assert_allclose(back[0, :, 0], numbers[0, :, 0], rtol=2.0**-12, atol=1e-41)
    np.testing.assert_array_equal(back[1, :, 4], numbers[1, :, 4])


def test_a_report_in_a_page_has_all_that_a_report_has(tmp_path: Path) -> None:
    write_log(tmp_path, steps=2)

    packed = unpack_json(base64.b64decode(excerpt_of(tmp_path, room=10**6).content["reports"]))

    assert isinstance(packed, dict)
    assert set(packed["reports"][0]) == {field.name for field in fields(Diagnosis)}


def test_the_largest_number_does_not_become_infinite() -> None:
    largest = np.array([np.finfo(np.float32).max], np.float32)

    assert np.isfinite(rounded(largest)).all()


def test_all_steps_are_kept_where_they_fit(tmp_path: Path) -> None:
    write_log(tmp_path, steps=50)

    found = excerpt_of(tmp_path, room=10**6)

    assert (found.recorded, found.kept) == (50, 50)
    assert list(reports_in(found)) == list(range(50))


def test_steps_go_until_it_fits_and_the_ends_and_the_chosen_one_stay(tmp_path: Path) -> None:
    write_log(tmp_path, steps=300)
    whole = excerpt_of(tmp_path, room=10**6)
    room = len(json.dumps(whole.content["gradients"])) // 2

    found = excerpt_of(tmp_path, room=room, step=123)

    assert found.kept < 300
    assert {0, 123, 299} <= set(found.content["overview"]["steps"])
    assert list(reports_in(found)) == found.content["overview"]["steps"]


def test_a_finding_of_one_step_alone_is_kept_though_there_is_room_for_nothing(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        for number in range(200):
            writer.write_step(step(number, norm=float("inf") if number == 77 else 1.0))

    found = excerpt_of(tmp_path, room=1)

    causes = {cause for causes in reports_in(found).values() for cause in causes}
    every = {each.cause for at in range(200) for each in tb_gradflow.open_log(tmp_path).report(at).findings}
    assert causes == every
    assert found.kept < 10


def test_a_run_without_a_completed_step_has_a_page(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())

    found = excerpt_of(tmp_path, room=10**6)

    assert (found.recorded, found.kept) == (0, 0)
    assert list(reports_in(found)) == [-1]


def test_a_page_of_many_steps_stays_below_three_megabytes(tmp_path: Path) -> None:
    """As many rows and variables as a ResNet50 has, and numbers that no packer can guess."""
    write_large(tmp_path / "run", steps=200)

    assert main(["report", str(tmp_path), "--html", str(tmp_path / "page.html")]) == 0

    assert (tmp_path / "page.html").stat().st_size < 3_000_000


def test_a_page_says_who_made_it_and_not_where_the_log_lay(tmp_path: Path) -> None:
    write_log(tmp_path / "logs" / "run1")
    tb_gradflow.open_log(tmp_path / "logs" / "run1").report().save_html(tmp_path / "page.html")

    text = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert f'<meta name="generator" content="tb-gradflow {VERSION}">' in text
    assert str(tmp_path) not in text


def test_a_page_that_cannot_be_written_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path)

    assert main(["report", str(tmp_path), "--html", str(tmp_path / "nowhere" / "page.html")]) == 2
    assert "the page cannot be written" in capsys.readouterr().err


def test_json_and_a_page_can_be_had_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path)

    assert main(["report", str(tmp_path), "--json", "--html", str(tmp_path / "page.html"), "--fail-on=error"]) == 1
    assert list(json.loads(capsys.readouterr().out)["runs"]) == ["."]


def test_the_viewer_in_the_page_is_no_beginning_or_end_of_a_script() -> None:
    assert not re.search(r"</script|<script|<!--", page_module.viewer_code(), re.IGNORECASE)


def test_where_looking_takes_too_long_a_page_holds_what_was_looked_at_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, steps=100)
    monkeypatch.setattr(excerpt_module, "SECONDS_OF_LOOKING", 0.0)

    found = excerpt_of(tmp_path, room=10**6)

    assert (found.recorded, found.kept, found.looked_at) == (100, 8, 8)
    assert {0, 99} <= set(found.content["overview"]["steps"])
