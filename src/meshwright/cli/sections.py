"""Help with the options under headings."""

from __future__ import annotations

from collections.abc import Mapping

import click


class SectionedCommand(click.Command):
    """A command whose help groups its options.

    Args:
        sections: heading to the parameter names under it, in order; options that no section
            names come last, under "Other".
    """

    def __init__(
        self, *args: object, sections: Mapping[str, tuple[str, ...]], **kwargs: object
    ) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one definition list per section."""
        records = {
            str(param.name): record
            for param in self.get_params(ctx)
            if (record := param.get_help_record(ctx)) is not None
        }
        for title, names in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section("Other"):
            formatter.write_dl(list(records.values()))


#: What both `plan` and `estimate` begin with.
WORKLOAD_SECTION = {
    "Cluster and workload": (
        "cluster",
        "global_batch_size",
        "seq_length",
        "precision",
        "optimizer",
        "attention",
        "stack",
    )
}
#: The dimensions of a strategy, under the heading that a command gives them.
STRATEGY_NAMES = (
    "tp",
    "pp",
    "cp",
    "dp",
    "data_shard",
    "ep",
    "etp",
    "vpp",
    "micro_batch_size",
    "zero",
    "recompute",
    "sequence_parallel",
    "offload",
    "context_algorithm",
    "axis_order",
)
