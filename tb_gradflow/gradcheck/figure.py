"""The error of finite differences over their step, as a picture for a notebook."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from tb_gradflow.gradcheck.report import ArgumentCheck, GradientsCheck, StepError

_WIDTH, _HEIGHT, _MARGIN = 360, 150, 36

_TONES = {True: "#1a7f37", False: "#c62828"}


def page(check: GradientsCheck) -> str:
    """A fragment of HTML: the verdicts, and for each argument the error over the step."""
    parts = [_argument(each) for each in check.arguments.values()]
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in check.notes)
    return f'<div style="font-family: sans-serif; max-width: 46em">{"".join(parts)}{notes}</div>'


def _argument(check: ArgumentCheck) -> str:
    tone = _TONES[check.correct]
    name, verdict = html.escape(check.name), html.escape(check.verdict.replace("_", " "))
    head = f'<p><b>argument {name}</b> <b style="color: {tone}">{verdict}</b></p>'
    return f"{head}<p>{html.escape(check.message)}</p>{_curve(check.steps, check.best_step)}"


def _curve(steps: Sequence[StepError], best: float | None) -> str:
    known = [each for each in steps if math.isfinite(each.error) and each.step > 0]
    if len(known) < 2:
        return ""
    xs = [math.log10(each.step) for each in known]
    ys = [math.log10(max(each.error, 1e-16)) for each in known]
    left, right, low, high = min(xs), max(xs), math.floor(min(ys)), math.ceil(max(ys))
    high = high if high > low else low + 1

    def at(x: float, y: float) -> tuple[float, float]:
        across = _MARGIN + (x - left) / (right - left) * (_WIDTH - 2 * _MARGIN)
        down = _HEIGHT - _MARGIN - (y - low) / (high - low) * (_HEIGHT - 1.5 * _MARGIN)
        return round(across, 1), round(down, 1)

    places = [at(x, y) for x, y in zip(xs, ys, strict=True)]
    line = " ".join(f"{x},{y}" for x, y in places)
    dots = "".join(
        f'<circle cx="{x}" cy="{y}" r="{4 if each.step == best else 2.5}" fill="currentColor">'
        f"<title>step {each.step:.2g}: error {each.error:.2g}</title></circle>"
        for (x, y), each in zip(places, known, strict=True)
    )
    ends = (
        _label(_MARGIN, _HEIGHT - 18, f"{known[0].step:.0e}", "middle")
        + _label(_WIDTH - _MARGIN, _HEIGHT - 18, f"{known[-1].step:.0e}", "middle")
        + _label(_WIDTH / 2, _HEIGHT - 4, "step", "middle")
        + _label(_MARGIN - 6, _HEIGHT - _MARGIN + 4, f"1e{low}", "end")
        + _label(_MARGIN - 6, _MARGIN / 2 + 4, f"1e{high}", "end")
        + _label(_MARGIN + 4, 12, "relative error; the large dot is the best step", "start")
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="relative error over step">'
        f'<polyline points="{line}" fill="none" stroke="currentColor"/>{dots}{ends}</svg>'
    )


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{round(x, 1)}" y="{round(y, 1)}" font-size="11" text-anchor="{anchor}" fill="currentColor">'
        f"{html.escape(text)}</text>"
    )
