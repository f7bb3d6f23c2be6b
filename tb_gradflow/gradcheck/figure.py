"""The error of finite differences over their step, as a picture for a notebook."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from tb_gradflow.gradcheck.report import ArgumentCheck, GradientsCheck, StepError

_WIDTH, _HEIGHT, _MARGIN = 372, 162, 44

# Backgrounds for white text: equally readable on a light and on a dark page of a notebook.
_RIGHT, _WRONG, _UNKNOWN = "#1a7f37", "#c62828", "#616770"


def page(check: GradientsCheck) -> str:
    """A fragment of HTML: the verdicts, and for each argument the error over the step."""
    parts = [_argument(each) for each in check.arguments.values()]
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in check.notes)
    return f'<div style="font-family: sans-serif; max-width: 46em">{"".join(parts)}{notes}</div>'


def _argument(check: ArgumentCheck) -> str:
    tone = _RIGHT if check.correct else _WRONG if check.known else _UNKNOWN
    name, verdict = html.escape(check.name), html.escape(check.verdict.replace("_", " "))
    head = (
        f'<p><b>argument {name}</b> <b style="background: {tone}; color: #fff; '
        f'padding: 1px 7px; border-radius: 9px">{verdict}</b></p>'
    )
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
        _label(_MARGIN, _HEIGHT - 18, _short(known[0].step), "middle")
        + _label(_WIDTH - _MARGIN, _HEIGHT - 18, _short(known[-1].step), "middle")
        + _label(_WIDTH / 2, _HEIGHT - 4, "step", "middle")
        + _label(_MARGIN - 6, _HEIGHT - _MARGIN + 4, _short(10.0**low), "end")
        + _label(_MARGIN - 6, _MARGIN / 2 + 4, _short(10.0**high), "end")
        + _label(_MARGIN + 4, 11, "relative error; the large dot is the best step", "start")
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="relative error over step">'
        f'<path d="M{_MARGIN} {_MARGIN / 2}V{_HEIGHT - _MARGIN}H{_WIDTH - _MARGIN}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.4"/>'
        f'<polyline points="{line}" fill="none" stroke="currentColor"/>{dots}{ends}</svg>'
    )


def _short(number: float) -> str:
    """In the shortest form, with a true minus sign."""
    digit, _, exponent = f"{number:.0e}".partition("e")
    return f"{digit}e{int(exponent)}".replace("-", "\N{MINUS SIGN}")


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{round(x, 1)}" y="{round(y, 1)}" font-size="11" text-anchor="{anchor}" fill="currentColor">'
        f"{html.escape(text)}</text>"
    )
