"""Which edits may fix which cause."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.edits import (
    images,
    left_tensorflow,
    not_finite,
    positions,
    settings,
    soft,
    straight_through,
    tapes,
    variables,
    wiring,
)
from tb_gradflow.analyse.edits.candidate import Candidate, Maker
from tb_gradflow.analyse.words.names import Group

MAKERS: dict[str, tuple[Maker, ...]] = {
    "nondiff_rounding": (straight_through.through_rounding, positions.soft_position),
    "nondiff_sign": (straight_through.through_sign,),
    "nondiff_comparison": (soft.soft_comparison,),
    "predicate_only": (soft.soft_branch,),
    "nondiff_index": (positions.soft_position,),
    "nondiff_sampling": (positions.soft_position, soft.soft_comparison),
    "nondiff_counting": (positions.soft_count, soft.soft_comparison),
    "integer_dtype": (variables.floating, straight_through.through_rounding, positions.soft_position),
    "python_escape": (left_tensorflow.inside,),
    "python_snapshot": (variables.computed_in_the_step,),
    "variable_assign": (variables.kept_beside,),
    "variable_rebound": (variables.assigned_in_place,),
    "tape_scope": (tapes.forward_pass_inside,),
    "tape_not_watching": (tapes.watching,),
    "not_in_gradient_sources": (tapes.requested_too,),
    "stop_gradient_misuse": (tapes.not_stopped,),
    "xla_boundary": (settings.without_xla,),
    "frozen_by_flag": (variables.trainable,),
    "softmax_single_class": (settings.other_axis,),
    "saturation_clip": (settings.without_clipping,),
    "dead_relu": (settings.leaky,),
    "vanishing_depth": (settings.not_saturating,),
    "zero_init_product": (variables.not_all_zeros,),
    "gradient_cancellation": (settings.stopped_sample,),
    "normalise_zero_vector": (not_finite.larger_epsilon,),
    "sqrt_at_zero": (not_finite.bounded_root,),
    "zero_over_zero": (not_finite.no_quotient_of_nothing,),
    "where_inactive_branch": (not_finite.safe_branch,),
    "log_zero": (not_finite.bounded_logarithm,),
    "exp_overflow": (not_finite.less_steep,),
    "pow_fraction_at_zero": (not_finite.bounded_power,),
    "acos_at_one": (not_finite.bounded_angle,),
    "fp16_overflow": (not_finite.wider_numbers,),
    "output_not_used": (wiring.result_kept,),
    "no_gradient_registered": (images.contrast_by_hand,),
    "softmax_all_masked": (not_finite.finite_mask,),
}
"""By cause, the best first. A cause that is not here is fixed by a decision: another loss, another architecture."""


def fixes_of(group: Group) -> Iterator[Candidate]:
    """The edits that may fix a finding, the best first. None without the user's source."""
    if not group.trace.passages:
        return
    for maker in MAKERS.get(group.verdict.cause, ()):
        yield from maker(group)
