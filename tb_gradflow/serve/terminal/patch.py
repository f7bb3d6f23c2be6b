"""An edit as a unified diff, and its result as a sentence. `frontend/src/model/patch.ts` does the same on the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from tb_gradflow.record.report import Edit, Finding, Tried
from tb_gradflow.record.schema import Passage

CONTEXT = 3
"""Context lines around an edit, as far as the log has them. `git apply` cannot place a diff without context."""

_NAMED = 3
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]')


def patch_of(edit: Edit, passages: Sequence[Passage] = (), shifted: int = 0, *, with_header: bool = True) -> str:
    """The lines of the diff; given the passages of its trace, in the form that `git apply` accepts.

    Args:
        edit: The edit.
        passages: Those of its trace.
        shifted: Number of lines that earlier edits in the same diff add to the file.
        with_header: Whether the diff begins with the file's name, as its first part has to.
    """
    before, after = _around(edit, passages)
    old, new = edit.before.split("\n"), edit.after.split("\n") if edit.after else []
    first = edit.line - len(before)
    lines = [f" {line}" for line in before]
    lines += _compared(old, new)
    lines += [f" {line}" for line in after]
    kept = len(before) + len(after)
    now = first + shifted
    head = f"@@ -{first},{kept + len(old)} +{now if kept + len(new) else now - 1},{kept + len(new)} @@"
    header = [f"--- {_path('a', edit.file)}", f"+++ {_path('b', edit.file)}"] if with_header else []
    return "\n".join([*header, head, *lines]) + "\n"


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """The lines of both, each with its sign. An edit of two places has lines between them that it keeps."""
    for kind, begin, end, begin_new, end_new in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (f" {line}" for line in old[begin:end])
        else:
            yield from (f"-{line}" for line in old[begin:end])
            yield from (f"+{line}" for line in new[begin_new:end_new])


def _around(edit: Edit, passages: Sequence[Passage]) -> tuple[list[str], list[str]]:
    for passage in passages:
        lines = passage.text.split("\n")
        begin, end = edit.line - passage.line, edit.end_line - passage.line + 1
        if passage.file == edit.file and begin >= 0 and lines[begin:end] == edit.before.split("\n"):
            return lines[max(0, begin - CONTEXT) : begin], [*lines[end:], *passage.after][:CONTEXT]
    return [], []


def _path(side: str, file: str) -> str:
    """In git's form: quoted if necessary, and followed by a tab if it has a space."""
    path = f"{side}/{file}"
    if _SPECIAL.search(path):
        return '"' + _SPECIAL.sub(lambda found: f"\\{ord(found[0]):03o}", path) + '"'
    return f"{path}\t" if " " in path else path


def tried_in_words(tried: Tried) -> str:
    """The result of the edit in the step that was explained, and in the steps that were trained with it."""
    said = "; ".join((*_gradients(tried), *_loss(tried)))
    others = " together with the edits of other findings" * tried.with_others
    when = "this batch" if tried.step is None else f"the batch of step {tried.step}"
    step = f"Tried on {when}{others}{'' if tried.works else ', but it does not work'}: {said}."
    return " ".join(filter(None, (step, _trained(tried), _kept(tried))))


def _trained(tried: Tried) -> str:
    trained = tried.trained
    if trained is None:
        return tried.not_trained
    without = f"; without it {_course(trained.without)}" if any(each is not None for each in trained.without) else ""
    return f"Trained for {trained.steps} steps with it: loss {_course(trained.loss)}{without}."


def _course(losses: Sequence[float | None]) -> str:
    return " to ".join("not finite" if each is None else f"{each:.3g}" for each in losses)


_KEPT = {"forward": "the forward values", "shape": "the shapes", "checkpoint": "the checkpoint"}


def _kept(tried: Tried) -> str:
    *kept, last = [said for name, said in _KEPT.items() if name in tried.keeps] or [""]
    return f"It keeps {', '.join(kept)}{' and ' * bool(kept)}{last}." if last else ""


_FOR_INFORMATION = "The edit has not been run: what is only information may be meant, and its edits are not tried."


def untried_in_words(finding: Finding) -> str:
    """Why the result of an edit is not known."""
    return (
        finding.not_tried
        or (_FOR_INFORMATION if finding.severity == "info" else "")
        or "The edit has not been run: `tb-gradflow run --try-fixes PROGRAM` tries it, and so does "
        "`tb_gradflow.explain(..., try_fixes=True)` on a batch."
    )


def _gradients(tried: Tried) -> Iterator[str]:
    if not tried.gradient_norm:
        yield "no variable gets a gradient"
    for each in tried.gradient_norm[:_NAMED]:
        yield f"`{each.written or each.variable}` now gets a gradient of norm {each.norm:.3g}"
    more = len(tried.gradient_norm) - _NAMED
    if more > 0:
        yield f"so {'does' if more == 1 else 'do'} {more} more"


def _loss(tried: Tried) -> Iterator[str]:
    before, after = (*tried.loss, None, None)[:2]
    if after is None:
        yield "the loss is not finite"
    elif before is None:
        yield f"the loss is now {after:.3g}"
    elif f"{before:.3g}" == f"{after:.3g}":
        yield f"the loss stays at {after:.3g}"
    else:
        yield f"the loss goes from {before:.3g} to {after:.3g}"
