"""The ``kernelcast`` command: registers one module per command and turns every user error into one sentence.

Exit codes: 0 success, 1 failed gate or illegal design, 2 bad input, 70 our own defect.  A command module exposes
``register(app: typer.Typer) -> None``; add its name to ``COMMAND_MODULES`` to make it appear.  Every module is
imported at start-up, so a command imports what is heavy or optional (numba, matplotlib) inside its function.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence

import typer
from pydantic import ValidationError

from simulator.errors import UserError

COMMAND_MODULES = (
    "hw",
    "occupancy",
    "access",
    "trace",
    "project",
    "tile",
    "tune",
    "compare",
    "gate",
    "ncu",
    "validate",
    "study",
    "demo",
)

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_DEFECT = 70
TRACEBACK_VARIABLE = "KERNELCAST_TRACEBACK"

# typer carries its own copy of click from one release to the next; its public error class leads to the right one.
UsageProblem: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException" and issubclass(kind, Exception)
)

app = typer.Typer(
    name="kernelcast",
    help="Predict how a GPU kernel will run on a chip that is described by a file.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _root(context: typer.Context) -> None:
    """Predict how a GPU kernel will run on a chip that is described by a file."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def register_commands(target: typer.Typer) -> None:
    """Let every command module that is installed add its commands to ``target``."""
    for name in COMMAND_MODULES:
        module = f"simulator.cli.{name}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module).register(target)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; a user error becomes one sentence on stderr."""
    command = typer.main.get_command(app)
    try:
        result = command.main(
            args=None if arguments is None else list(arguments), prog_name="kernelcast", standalone_mode=False
        )
    except UserError as error:
        return _fail(str(error))
    except UsageProblem as error:
        return _fail(f"{_usage_sentence(error)} (see {_command_path(error)} --help)")
    except (typer.Abort, KeyboardInterrupt):
        print("Interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return 0
    return result if isinstance(result, int) else 0


def _usage_sentence(error: BaseException) -> str:
    """What is wrong with the command line, without the help text that an empty command line would bring."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return "Missing command or argument"
    describe = getattr(error, "format_message", None)
    message = str(describe() if describe else error).rstrip(".")
    cause = error.__cause__ or error.__context__
    if isinstance(cause, ValidationError):
        message += f" (it is '{cause.errors(include_url=False)[0]['input']}')"
    return message


def _command_path(error: BaseException) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "kernelcast"


def _fail(message: str) -> int:
    sentence = " ".join(message.split())
    print(f"Error: {sentence}", file=sys.stderr)
    return EXIT_BAD_INPUT


def main() -> None:
    """Console entry point of ``kernelcast``; a defect of ours is one sentence too, unless a traceback is asked for."""
    try:
        code = run()
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        print(
            f"Error: kernelcast itself failed ({type(error).__name__}: {' '.join(str(error).split())}); "
            f"set {TRACEBACK_VARIABLE}=1 to see where, and report it",
            file=sys.stderr,
        )
        code = EXIT_DEFECT
    sys.exit(code)


register_commands(app)
