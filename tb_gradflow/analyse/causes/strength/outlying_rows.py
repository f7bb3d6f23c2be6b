"""A few rows of the batch that give most of its gradient."""

from __future__ import annotations

import math
from statistics import median

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.words.phrases import listed_rows
from tb_gradflow.record.report import ExampleGradients, Finding

# More than all other rows together: without them the gradient would be less than half as long.
MOST = 0.5

# The modified z-score above which Iglewicz and Hoaglin ("How to Detect and Handle Outliers", 1993) call a value an
# outlier: its distance from the median, divided by the median of all such distances, times 0.6745.
OUTLIER_ABOVE = 3.5
_OF_NORMAL = 0.6745

# With fewer rows, each contributes much, and a median of distances means little.
FEWEST = 8

# If there are more than this share of the batch, they are not outliers but a part of the data.
_FEW = 0.05

# Rows whose gradient is smaller than this share of the first one's are not named with it.
_BESIDE = 0.1


def outlying_rows(examples: ExampleGradients) -> tuple[int, ...]:
    """The rows, the one with the largest gradient first; empty if there are none. Nothing is concluded from gradients
    that are not finite, or if most rows have none, as with a hinge loss."""
    norms, shares = examples.norms, examples.shares
    if shares is None or len(norms) < FEWEST or not all(map(math.isfinite, norms)):
        return ()
    usual = median(norms)
    spread = median(abs(norm - usual) for norm in norms)
    if usual == 0:
        return ()
    outliers = [row for row, norm in enumerate(norms) if _OF_NORMAL * (norm - usual) > OUTLIER_ABOVE * spread]
    ranked = sorted(outliers, key=lambda row: -shares[row])[: max(1, int(_FEW * len(norms)))]
    found = [row for row in ranked if shares[row] >= _BESIDE * shares[ranked[0]]]
    return tuple(found) if math.fsum(shares[row] for row in found) > MOST else ()


def finding_of_outliers(examples: ExampleGradients | None, target: int) -> Finding | None:
    """None if there are no such rows, or if gradients of rows were not requested. `target` is the loss."""
    rows = outlying_rows(examples) if examples is not None else ()
    if examples is None or examples.shares is None or not rows:
        return None
    share = math.fsum(examples.shares[row] for row in rows)
    largest, usual = max(examples.norms[row] for row in rows), median(examples.norms)
    one = len(rows) == 1
    norms = "the gradient of that row has a norm of" if one else "the gradients of these rows have norms of up to"
    return Finding(
        cause=CAUSE.name,
        severity="info",
        variables=(),
        op=None,
        source=None,
        message=f"{listed_rows(rows)} of the batch of {len(examples.norms)} {'contributes' if one else 'contribute'} "
        f"{min(share, 1.0):.0%} of its gradient: {norms} {largest:.2g}, compared with {usual:.2g} for the median row.",
        fix=f"Check {'that row' if one else 'those rows'} first: a wrong label or an unscaled value produces such "
        "gradients. If the data is right, limit the influence of a single row: use a loss that grows only linearly, "
        "such as `keras.losses.Huber()`, or clip the gradient, `clipnorm=1.0`. Near the end of a training, it is "
        "normal that only a few rows still have an error.",
        target=target,
        culprit=-1,
        path=(),
        examples=tuple(rows),
    )


CAUSE = Cause(
    name="outlying_rows",
    meaning="at most one in twenty rows of the batch, but at least one, contribute more than half of its gradient, "
    "and their norms are outliers (modified z-score above 3.5); with `explain(..., examples=True)`",
    severity="info: near the end of a training, only a few rows still have an error",
    fix="look at the rows; a loss that grows linearly; clip the gradient",
    headline="A few rows of the batch contribute most of its gradient.",
)
