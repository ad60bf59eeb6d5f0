"""Count parameters with the transformers library, the referee of Meshwright's own counts.

Every case of the given file names a class and a configuration; the model is built on the
meta device, without memory or network, and its count is written back into the file::

    python -m venv referee && referee/bin/pip install torch transformers
    referee/bin/python scripts/count_parameters.py tests/data/parameter_counts.json

The versions used are recorded beside the counts. Tests compare with the file and need
neither library.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers


def count(case: dict[str, object]) -> int:
    """Learned scalars of one case, tied ones once, those set by a rule not at all."""
    config = dict(case["config"])  # type: ignore[call-overload]
    settings = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    with torch.device("meta"):
        model = getattr(transformers, str(case["class"])).from_config(settings)
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def main(paths: list[str]) -> None:
    """Recount every case of every file."""
    for path in map(Path, paths):
        record = json.loads(path.read_text(encoding="utf-8"))
        record["counted_with"] = {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }
        for case in record["cases"]:
            case["parameters"] = count(case)
            print(f"{case['name']}: {case['parameters']}")
        text = json.dumps(record, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
