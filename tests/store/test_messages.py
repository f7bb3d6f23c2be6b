"""The messages of event files, compared with TensorBoard's."""

from __future__ import annotations

from tensorboard.compat.proto import event_pb2, types_pb2
from tensorboard.compat.tensorflow_stub import pywrap_tensorflow
from tensorboard.plugins.hparams.summary_v2 import hparams_pb

from tb_gradflow.store import crc32c, messages
from tb_gradflow.store.layout import Tag, blob_value, event, float32_value, float64_value, version_event

TAG = Tag("steps", "1234567890123", 7)


def test_what_is_written_has_the_bytes_of_tensorboards_messages() -> None:
    values = [blob_value(TAG, b"\0\xff"), float32_value(TAG, (2, 1), bytes(8)), float64_value(TAG, (), bytes(8))]
    for written in (event(values, 5, 1.5), version_event(2.5)):
        theirs = event_pb2.Event.FromString(written.SerializeToString())

        assert theirs.SerializeToString() == written.SerializeToString()
        assert not list(theirs.summary.value) or theirs.summary.value[1].tensor.dtype == types_pb2.DT_FLOAT


def test_fields_of_others_are_read_past() -> None:
    theirs = event_pb2.Event(wall_time=1.0, step=3)
    theirs.summary.value.add(tag="loss", simple_value=0.5, node_name="node")
    theirs.summary.value.add(tag="text").tensor.int_val.append(4)

    ours = messages.Event.FromString(theirs.SerializeToString())

    assert (ours.step, ours.summary.value[0].simple_value) == (3, 0.5)
    assert event_pb2.Event.FromString(ours.SerializeToString()) == theirs


def test_hyperparameters_are_a_map() -> None:
    content = hparams_pb({"lr": 0.1, "name": "a"}).value[0].metadata.plugin_data.content

    hparams = messages.HParamsPluginData.FromString(content).session_start_info.hparams

    assert {name: value.WhichOneof("kind") for name, value in hparams.items()} == {
        "lr": "number_value",
        "name": "string_value",
    }


def test_the_checksum_is_tensorboards_with_and_without_c() -> None:
    for data in (b"", b"123456789", bytes(range(256))):
        assert crc32c._in_python(data) == pywrap_tensorflow.crc32c(data)
        assert crc32c.masked_crc32c(data) == pywrap_tensorflow.masked_crc32c(data)
