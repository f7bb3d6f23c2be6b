"""Weights that published models carry along for another phase of training."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_gradflow.record.schema import Layer
from tests.analyse.builders import FINE, Graph


def with_an_idle_weight(name: str, *, read: bool = False) -> Graph:
    graph = Graph()
    weight = graph.variable(name, read=read)
    if read:
        graph.op("Mul", weight)
    graph.target(graph.op("Mean", graph.variable("speech/frames/kernel")))
    graph.ask(name, None)
    graph.ask("speech/frames/kernel", FINE)
    return graph


@pytest.mark.parametrize("name", ["speech/mask_token", "wav2vec2/masked_spec_embed", "mae/decoder_mask_token"])
def test_what_stands_for_masked_places_is_idle_where_nothing_is_masked(name: str) -> None:
    finding = with_an_idle_weight(name).only_finding()

    assert (finding.cause, finding.severity) == ("unused_by_design", "info")
    assert "nothing is masked in this step" in finding.message
    assert f'expected=["{name}"]' in finding.fix


@pytest.mark.parametrize(
    ("name", "read"), [("speech/mask_token", True), ("speech/mask_scale", False), ("mask_token/kernel", False)]
)
def test_one_that_is_computed_with_in_vain_is_no_such_thing(name: str, read: bool) -> None:
    assert with_an_idle_weight(name, read=read).only_finding().cause == "output_not_used"


def test_a_single_number_that_a_layer_makes_in_vain_may_be_a_loss_of_its_own() -> None:
    graph = Graph()
    graph.layers = [Layer("recogniser/pull", "pull", "CentreLoss")]
    distance = graph.op("Square", graph.variable("pull/centres"), name="recogniser/pull/square")
    graph.op("Mean", distance, name="recogniser/pull/mean", shape=())
    graph.target(graph.op("Mean", graph.variable("who/kernel")))
    graph.ask("pull/centres", None)
    graph.ask("who/kernel", FINE)

    finding = graph.only_finding()

    assert finding.cause == "output_not_used"
    assert "If `pull` passes it to `add_loss`, add such losses in the step: `loss += sum(model.losses)`" in finding.fix


def test_weights_of_two_other_methods_are_reported_apart() -> None:
    """What is said of the first is not true of the second."""
    graph = with_an_idle_weight("model/encoder/kernel")
    graph.variable("model/scorer/kernel", read=False)
    graph.ask("model/scorer/kernel", None)
    for name, method in (("model/encoder/kernel", "encode"), ("model/scorer/kernel", "score")):
        place = graph.place(name)
        graph.variables[place] = replace(graph.variables[place], elsewhere=method)

    findings = graph.diagnose().findings

    told = {each.variables: each.message.split("`")[3] for each in findings}
    assert told == {("model/encoder/kernel",): "encode", ("model/scorer/kernel",): "score"}
