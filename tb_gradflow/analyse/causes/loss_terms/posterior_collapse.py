"""A variational autoencoder whose code tells nothing: the divergence holds it at the prior."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.loss_terms.term_findings import Told, called, finding_of, own_variables, pairs_in
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.terms import terms_in
from tb_gradflow.record.report import Finding

# Nats. A latent variable whose divergence stays below this for nearly all examples counts as collapsed (Lucas et al.
# 2019, "Don't Blame the ELBO!", with their epsilon of 0.01). The divergence bounds what the code can tell about an
# example (Alemi et al. 2018, "Fixing a Broken ELBO").
COLLAPSED_BELOW = 0.01

# Of a model that has just begun the divergence may be as small, and nothing holds it there: then nearly all of the
# gradient is the reconstruction's. In balance each has a half.
HELD_FROM = 0.25

_DIVERGENCE = re.compile(r"(^|[_/])kl(d|_|div|loss|term|$)|kullback")


def collapsed(measured: Measured) -> Iterator[Finding]:
    """A term called `kl` or the like that is next to zero, and that has a large part in the gradient of all that it
    reaches, beside a term that reaches the same and more: the encoder, and the decoder behind it.

    A student that has become like its teacher has a divergence next to zero, too, and no variables that it does not
    reach.
    """
    terms = terms_in(measured)
    for pair in pairs_in(measured):
        for divergence, other, part, rest in (
            (pair.one, pair.other, *pair.norms),
            (pair.other, pair.one, *pair.norms[::-1]),
        ):
            term = terms[divergence]
            if term.value is None or not term.weight or not _DIVERGENCE.search(term.name.lower()):
                continue
            nats = term.value / term.weight
            decoder = list(own_variables(terms, other, divergence))
            if not 0 <= nats < COLLAPSED_BELOW or not decoder or any(own_variables(terms, divergence, other)):
                continue
            if part < HELD_FROM * (part + rest) or part == 0:
                continue
            yield finding_of(
                measured,
                CAUSE.name,
                "warning",
                divergence,
                pair.variables,
                Told(
                    f"Posterior collapse: {called(term)} is {nats:.2g} before its weight of {term.weight:.3g}, so that "
                    f"the code tells the decoder nothing about the example, and holds it there with "
                    f"{part / (part + rest):.0%} of the encoder's gradient.",
                    f"Weigh `{term.name}` less, at first or throughout: raise its weight from 0 over some epochs (KL "
                    f"annealing, Bowman et al. 2016), or let it be zero up to some nats, `tf.maximum({term.name}, "
                    f"free_nats)` (Kingma et al. 2016). Where `{terms[other].name}` is a mean over pixels and "
                    f"`{term.name}` a sum, take the sum of both: a mean over 784 pixels weighs the divergence 784 "
                    "times as much.",
                ),
            )


CAUSE = Cause(
    name="posterior_collapse",
    meaning="a term called `kl` or the like is below 0.01 without its weight, has a quarter or more of the gradient of "
    "all that it reaches, and another term reaches the same and more",
    severity="warning",
    fix="a smaller weight of the divergence, at first or throughout; free bits; the same reduction for both terms",
    plight="a gradient that holds the code at the prior",
    headline="Posterior collapse: the code tells the decoder nothing.",
    subject="the divergence",
    verb="is next to zero",
)
