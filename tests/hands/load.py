"""`python -m tests.hands.load FILE`: loads what the hands have saved, in a process that must not need tb_gradflow for
it, and writes digests by hand and file."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from pathlib import Path
from typing import Any


def _loaded(path: Path) -> Any:
    import keras
    import tensorflow as tf

    if path.suffix in (".keras", ".h5") and "weights" not in path.name:
        return keras.models.load_model(path, compile=False).get_weights()
    if path.name == "saved_model.pb":
        tf.saved_model.load(str(path.parent))
        values = tf.train.load_checkpoint(str(path.parent / "variables" / "variables"))
        names = sorted(values.get_variable_to_shape_map())
        return [values.get_tensor(name) for name in names if name != "_CHECKPOINTABLE_OBJECT_GRAPH"]
    if path.suffix == ".pickle":
        return pickle.loads(path.read_bytes()).get_weights()
    return None


def main() -> None:
    left = json.loads(Path(sys.argv[1]).read_text())
    found: dict[str, dict[str, str]] = {}
    for name, each in left.items():
        for path in sorted(Path(each["directory"]).rglob("*")):
            weights = _loaded(path)
            if weights is not None:
                digest = hashlib.sha256(b"".join(sorted(weight.tobytes() for weight in weights))).hexdigest()
                found.setdefault(name, {})[path.relative_to(each["directory"]).as_posix()] = digest
    if "tb_gradflow" in sys.modules:
        raise RuntimeError("what was saved needs tb_gradflow to be loaded")
    Path(sys.argv[2]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
