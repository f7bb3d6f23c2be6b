"""The messages of TensorBoard's event files, as far as a log uses them: the same names and numbers of fields, so that
the bytes are the same. Neither TensorBoard nor TensorFlow has to be installed.

The definitions are those of `event.proto`, `summary.proto`, `tensor.proto`, `tensor_shape.proto` and the plugin
`hparams`. What these have in addition is kept as unknown fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pool, message_factory, struct_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

if TYPE_CHECKING:
    from google.protobuf.message import Message as Event
    from google.protobuf.message import Message as HParamsPluginData
    from google.protobuf.message import Message as Summary
    from google.protobuf.message import Message as SummaryMetadata
    from google.protobuf.message import Message as TensorProto
    from google.protobuf.message import Message as TensorShapeProto

__all__ = [
    "DATA_CLASS_BLOB_SEQUENCE",
    "DATA_CLASS_TENSOR",
    "DT_DOUBLE",
    "DT_FLOAT",
    "DT_STRING",
    "Event",
    "HParamsPluginData",
    "Summary",
    "SummaryMetadata",
    "TensorProto",
    "TensorShapeProto",
]

DT_FLOAT, DT_DOUBLE, DT_STRING = 1, 2, 7
DATA_CLASS_TENSOR, DATA_CLASS_BLOB_SEQUENCE = 2, 3

_PACKAGE = "tb_gradflow"
_VALUE = "google.protobuf.Value"

# Message -> its fields: number, name, type, and a star for a list. Enums have the bytes of int32.
_MESSAGES: dict[str, tuple[str, ...]] = {
    "Event": ("1 wall_time double", "2 step int64", "3 file_version string", "5 summary Summary"),
    "Summary": ("1 value Summary.Value *",),
    "Summary.Value": ("1 tag string", "2 simple_value float", "8 tensor TensorProto", "9 metadata SummaryMetadata"),
    "SummaryMetadata": ("1 plugin_data SummaryMetadata.PluginData", "4 data_class int32"),
    "SummaryMetadata.PluginData": ("1 plugin_name string", "2 content bytes"),
    "TensorProto": (
        "1 dtype int32",
        "2 tensor_shape TensorShapeProto",
        "4 tensor_content bytes",
        "8 string_val bytes *",
    ),
    "TensorShapeProto": ("2 dim TensorShapeProto.Dim *", "3 unknown_rank bool"),
    "TensorShapeProto.Dim": ("1 size int64", "2 name string"),
    "HParamsPluginData": ("3 session_start_info SessionStartInfo",),
    # A map is a list of pairs.
    "SessionStartInfo": ("1 hparams SessionStartInfo.HparamsEntry *",),
    "SessionStartInfo.HparamsEntry": ("1 key string", f"2 value {_VALUE}"),
}


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto3")
    file.dependency.append(struct_pb2.DESCRIPTOR.name)
    made: dict[str, Any] = {}
    for name, fields in _MESSAGES.items():
        outer, _, inner = name.rpartition(".")
        message = made[outer].nested_type.add(name=inner) if outer else file.message_type.add(name=inner)
        message.options.map_entry = inner.endswith("Entry")
        made[name] = message
        for field in fields:
            number, called, kind, *star = field.split()
            added = message.field.add(name=called, number=int(number))
            added.label = FieldDescriptorProto.LABEL_REPEATED if star else FieldDescriptorProto.LABEL_OPTIONAL
            scalar = getattr(FieldDescriptorProto, f"TYPE_{kind.upper()}", None)
            added.type = FieldDescriptorProto.TYPE_MESSAGE if scalar is None else scalar
            if scalar is None:
                added.type_name = f".{kind}" if kind == _VALUE else f".{_PACKAGE}.{kind}"
    return file


def _classes(*names: str) -> list[Any]:
    # Not the default pool: another copy of this module, of another version, may be in the same process.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(_file().SerializeToString())
    # Before protobuf 4.22 it was a method.
    make = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return [make(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in names]


if not TYPE_CHECKING:
    Event, Summary, SummaryMetadata, TensorProto, TensorShapeProto, HParamsPluginData = _classes(
        "Event", "Summary", "SummaryMetadata", "TensorProto", "TensorShapeProto", "HParamsPluginData"
    )
