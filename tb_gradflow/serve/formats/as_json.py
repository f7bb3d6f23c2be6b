"""Reports as JSON: `{"runs": {NAME: report}}`, each in the form of `Report.to_dict`."""

from __future__ import annotations

import json

from tb_gradflow.serve.formats.batch import Batch


def render(batch: Batch) -> str:
    return json.dumps({"runs": {run.name: run.report.to_dict() for run in batch.runs}}, indent=2)
