"""The command group, and how every outcome becomes a message and an exit code."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

import click

from meshwright.cli.failures import (
    EXIT_INTERRUPTED,
    report_bug,
    report_click,
    report_error,
    report_warning,
    wants_json,
)
from meshwright.cli.values import quoted
from meshwright.errors import FileError, MeshwrightError, UsageError, nearest

_EPILOG = """\b
Examples:
  meshwright plan llama-3.1-70b --cluster 32x8xH100 \\
      --global-batch-size 1024 --seq-length 8192
  meshwright estimate gpt3-175b --cluster 128x8xA100-80GB \\
      --global-batch-size 1536 --seq-length 2048 --tp 8 --pp 8
  meshwright inspect llama-3.1-70b
  meshwright inspect 4x8xH100
  meshwright validate
  meshwright calibrate --measurements runs.csv -o my-cluster

\b
Exit codes: 0 done, 2 the request is wrong, 3 nothing fits, 130 interrupted.
"""


class _Commands(click.Group):
    """Commands that are imported when they are run, so that each starts fast."""

    _modules = {  # noqa: RUF012 - read only
        "plan": "meshwright.cli.plan",
        "estimate": "meshwright.cli.estimate",
        "inspect": "meshwright.cli.inspect",
        "validate": "meshwright.cli.validate",
        "calibrate": "meshwright.cli.calibrate",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a user needs them."""
        del ctx
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        del ctx
        if cmd_name not in self._modules:
            return None
        command = import_module(self._modules[cmd_name]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is an error of our form."""
        if args and args[0] not in self._modules and not args[0].startswith("-"):
            close = nearest(args[0][:40], self._modules, count=1) or ("plan",)
            raise UsageError(
                f"there is no command {quoted(args[0])}",
                where="command line",
                allowed=", ".join(self._modules),
                fix=f"did you mean `meshwright {close[0]}`?",
            )
        return super().resolve_command(ctx, args)


def _show_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"meshwright {version('meshwright')}")
        ctx.exit()


@click.command(
    cls=_Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Print the version and leave.",
)
def cli() -> None:
    """Plan the parallel training of large models.

    A model and a cluster in, the best mix of tensor, pipeline, data, ZeRO, context and expert
    parallelism out.
    """


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line: see ``meshwright.cli.main``."""
    given = list(sys.argv[1:] if args is None else args) or ["--help"]
    as_json = wants_json(given)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names that the terminal's encoding lacks
            stream.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = report_warning
            code = cli.main(given, prog_name="meshwright", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except MeshwrightError as error:
        return report_error(error, as_json=as_json)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        return report_click(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except SystemExit:  # click's answer to a reader that has left, as `head` does
        return 0
    except OSError as error:
        return report_error(_unwritten(error), as_json=False)
    except Exception as error:  # noqa: BLE001 - the last resort: never a traceback
        return report_bug(error, as_json=as_json)


def _unwritten(error: OSError) -> FileError:
    """Files that a user names are handled where they are read; what is left is the output."""
    return FileError(
        f"the output cannot be written: {error.strerror or type(error).__name__}",
        where="stdout",
        allowed="a terminal, a pipe, or a file with room",
        fix="free some space, or write elsewhere",
    )
