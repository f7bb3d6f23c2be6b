"""A variational autoencoder whose code contains no information: the divergence holds it at the prior."""

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

# In a model at the start of its training the divergence may be equally small, but nothing holds it there: then almost
# all of the gradient comes from the reconstruction. In balance each has a half.
HELD_FROM = 0.25

_DIVERGENCE = re.compile(r"(^|[_/])kl(d|_|div|loss|term|$)|kullback")


def collapsed(measured: Measured) -> Iterator[Finding]:
    """A term called `kl` or similar that is close to zero, and that has a large share of the gradient of all variables
    that it reaches, next to a term that reaches these and more: the encoder, and the decoder after it. A student that
    has become like its teacher also has a divergence close to zero, but there the term reaches all variables.
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
                    f"Posterior collapse: {called(term)} is {nats:.2g} (before its weight of {term.weight:.3g}), so "
                    "the code carries almost no information about the example. With "
                    f"{part / (part + rest):.0%} of the encoder's gradient, the term keeps itself close to zero.",
                    f"Use a smaller weight for `{term.name}`, or raise its weight from 0 over several epochs (KL "
                    f"annealing, Bowman et al. 2016); or allow it some free nats, `tf.maximum({term.name}, "
                    f"free_nats)` (Kingma et al. 2016). If `{terms[other].name}` is a mean over pixels and "
                    f"`{term.name}` a sum, use the sum for both: a mean over 784 pixels gives the divergence 784 "
                    "times as much weight.",
                ),
            )


CAUSE = Cause(
    name="posterior_collapse",
    meaning="a term called `kl` or similar is below 0.01 before its weight, has a quarter or more of the gradient of "
    "all variables that it reaches, and another term reaches the same ones and more",
    severity="warning",
    fix="a smaller weight for the divergence, at first or throughout; free bits; the same reduction for both terms",
    plight="a gradient that holds the code at the prior",
    headline="Posterior collapse: the code carries almost no information.",
    subject="the divergence",
    verb="is close to zero",
)
