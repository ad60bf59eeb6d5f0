"""Why a row cannot be predicted: a short stable key, and a sentence."""

from __future__ import annotations

from meshwright.errors import UsageError

#: Every key, with what it means.
SKIPS: dict[str, str] = {
    "not_fit_ready": "the table says that the row is incomplete, inconsistent or too noisy",
    "no_result": "the row has neither a time nor a memory nor an outcome to compare with",
    "not_a_transformer": "convolutions and generators are not described by these columns",
    "layers_not_described": "state-space layers are not described by these columns",
    "dimensions_missing": "a dimension of the model is not stated",
    "batch_missing": "the batch, the micro-batch or the sequence length is not stated",
    "unknown_device": "the device is not in the catalogue",
    "uneven_nodes": "the devices do not fill nodes of the stated size",
    "degrees_disagree": "the parallel degrees do not multiply to the devices or the batch",
    "strategy_not_expressible": "the strategy, or what it splits, is one that we do not model",
    "fine_tuning": "adapters train few of the parameters: the columns do not say which",
}


class RowSkippedError(UsageError):
    """A row that cannot be predicted.

    Attributes:
        key: one of ``SKIPS``.
        detail: what exactly, for this row.
    """

    def __init__(self, key: str, detail: str = "") -> None:
        assert key in SKIPS, key
        super().__init__(detail or SKIPS[key], where="row", allowed="", fix="")
        self.key = key
        self.detail = detail or SKIPS[key]
