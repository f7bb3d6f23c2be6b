"""What is wrong with the programs of GRIST, by script: the op that becomes NaN or infinite, and its line.

From the authors' own search: each script has an `obj_function`, which drives the input of one op to where that op is
not defined. Written down before the programs were run for the first time: all 57 scripts of the 41 programs that use
TensorFlow. Where a program has two such ops that the script does not keep apart, either is right. The file is the
script, or the file in front of the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

TRUTHS = """
ID_1/ghips1 Log:136
ID_2/command_line/run_logistic_regression Log:model.py:112 Log:model.py:113
ID_2/command_line/run_logistic_regression_log2 Log:model_log2.py:112 Log:model_log2.py:113
ID_3/ghips9 Log:39
ID_6/soips1 Log:66
ID_7/soips2 Log:65
ID_8/soips6 Log:65
ID_9/soips7 Log:27 Log:28
ID_9/soips7_log2 Log:27 Log:28
ID_10/soips14 Log:31
ID_11/nan_model_exp Exp:67
ID_11/nan_model_log Log:73
ID_11/nan_model_truediv RealDiv:72
ID_14/v3/train Log:model.py:68
ID_15/train Log:55
ID_16/nan_model Exp:184
ID_16/nan_model_log Log:191
ID_16/nan_model_truediv RealDiv:185
ID_17/test_toy Exp:layers.py:62
ID_18/code_10_image Log:47
ID_19/mnist Log:78
ID_20/logistic_regression Log:36
ID_21/mnist_softmax Log:47
ID_24/Mnist Log:71
ID_25/mnist Log:23
ID_28/sc_train_creg RealDiv:145
ID_28/sc_train_creg_div2 RealDiv:109
ID_28/sc_train_l2reg RealDiv:117
ID_28/sc_train_l2reg_div2 RealDiv:109
ID_29/temp Log:126
ID_30/softmax Log:25
ID_31/GAN_MNIST Log:108
ID_35/ch10_04_01 Log:63
ID_35/ch10_04_01_sqrt Sqrt:60
ID_36/ch10_04_03_Pic_10_05 Log:65
ID_36/ch10_04_03_Pic_10_05_sqrt Sqrt:59
ID_39/ch10_04_04_Pic_10_06 Log:63
ID_39/ch10_04_04_Pic_10_06_sqrt Sqrt:61
ID_40/src/ch5/bmi Log:25
ID_41/src/ch5/tb-bmi Log:25
ID_42/src/ch5/tb-bmi2 Log:28
ID_43/ch10_04_05_Pic_10_07 Log:72
ID_43/ch10_04_05_Pic_10_07_sqrt Sqrt:63
ID_44/CNN Log:107
ID_45/MNIST_Digit_classification_using_CNN Log:19
ID_45/MNIST_Digit_classification_using_CNN2 Log:47
ID_48/day01 Log:71
ID_48/day01_2 Log:101
ID_49/ch10_04_06_Pic_10_08 Log:72
ID_49/ch10_04_06_Pic_10_08_sqrt Sqrt:62
ID_50/DL_1L Log:20
ID_52/5_mnist_full_connection Log:22
ID_55/logistic_regression Log:72
ID_58/test Log:86
ID_59/code_06 Log:52
ID_60/simple_saveAndReloadModel Log:20
ID_61/multi_layer_perceptron Log:32
"""

FAMILIES = {"Log1p": "Log", "Div": "RealDiv", "DivNoNan": "RealDiv", "Rsqrt": "Sqrt"}
"""Ops that are written as the same function."""


def programs(checkout: Path) -> Iterator[tuple[str, Path]]:
    """Name and file of each script that searches for its NaN."""
    for name in _TRUTHS:
        yield name, checkout / "scripts" / "study_case" / f"{name}_grist.py"


def expected(name: str) -> str:
    return " ".join(":".join(each) for each in _TRUTHS[name])


def grade(name: str, reports: Iterable[Mapping[str, Any]]) -> str:
    """Of the errors: `right` names op and line, `partly` one of both, `wrong` neither."""
    marks = [
        max(_agreement(finding, *each) for each in _TRUTHS[name])
        for report in reports
        for finding in report["findings"]
        if finding["severity"] == "error"
    ]
    return ("wrong", "partly", "right")[max(marks)] if marks else "silent"


def _agreement(finding: Mapping[str, Any], op: str, file: str, line: str) -> int:
    kind = (finding["op"] or {}).get("type", "")
    source = finding["source"] or {"file": "", "line": 0}
    at_line = Path(source["file"]).name == file and source["line"] == int(line)
    return int(FAMILIES.get(kind, kind) == op) + int(at_line)


def _parsed(text: str) -> dict[str, list[tuple[str, str, str]]]:
    parsed = {}
    for line in text.split("\n"):
        if line:
            name, *places = line.split()
            script = f"{name.rsplit('/', 1)[-1]}_grist.py"
            parts = [each.split(":") for each in places]
            parsed[name] = [(each[0], each[1] if len(each) == 3 else script, each[-1]) for each in parts]
    return parsed


_TRUTHS = _parsed(TRUTHS)
