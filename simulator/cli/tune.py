"""``kernelcast tune``: the best design of a problem, ranked, kept in a database, and looked up there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simulator.cli.output import atomic_write, emit_json, require_writable, stderr, stdout
from simulator.cli.progress import announce_compilation, progress
from simulator.errors import UserError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from simulator.hw.config import HardwareConfig
    from simulator.tuning.batch import Order, Outcome
    from simulator.tuning.database import Database
    from simulator.tuning.query import Chip
    from simulator.tuning.search import Tuned

FAILED = 1
DEFAULT_FAMILY = "gemm"
FAMILY_HELP = (
    "What to tune (gemm, convolution, attention, layer_norm, rms_norm, softmax), with its problem as options: "
    "--m 4096 --n 4096 --k 4096 --dtype bf16."
)
ENVELOPE_HELP = "What a design may lose at another shape and still hold there (kept in the database)."


def register(app: typer.Typer) -> None:
    """Add ``tune`` to the command line."""
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("tune", context_settings=settings)(tune)


def tune(
    context: typer.Context,
    family: Annotated[str, typer.Argument(metavar="FAMILY", help=FAMILY_HELP)] = DEFAULT_FAMILY,
    hw: Annotated[str | None, typer.Option(help="Chip: a name, or a YAML file. [required to tune]")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a hardware value.")] = None,
    shapes: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Many problems: columns m, n, k, dtype, ...")] = None,
    suite: Annotated[Path | None, typer.Option(metavar="SUITE.yaml", help="Many problems: the tile designs of a suite.")] = None,
    db: Annotated[Path | None, typer.Option(metavar="FILE", help="Database to keep designs in, or to ask.")] = None,
    query: Annotated[bool, typer.Option("--query", help="Ask the database instead of tuning.")] = False,
    export: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the database as .csv, .json, .py or .h.")] = None,
    top: Annotated[int, typer.Option(min=1, max=64, metavar="K", help="Designs to replay whole and to rank.")] = 4,
    simulate: Annotated[int, typer.Option(min=1, max=4096, metavar="N", help="Designs to simulate in parts.")] = 16,
    envelope: Annotated[float, typer.Option(min=0, max=1000, metavar="PERCENT", help=ENVELOPE_HELP)] = 10.0,
    again: Annotated[bool, typer.Option("--again", help="Tune again what the database holds.")] = False,
    jobs: Annotated[int, typer.Option(min=0, metavar="N", help="Worker processes (0: in this one).")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """Screen every legal design of a problem, simulate the most promising, rank them; keep the best in a database."""
    from simulator.tuning.batch import Order
    from simulator.tuning.database import Database
    from simulator.tuning.families import tunable
    from simulator.tuning.search import Effort

    if family.startswith("--"):
        family, context.args = DEFAULT_FAMILY, [family, *context.args]
    tunable(family)
    if export is not None:
        _refuse_options(context.args)
        return _export(_needed(db, "--export"), _named(hw, overrides), export)
    if query:
        return _answer(_needed(db, "--query"), _problem(family, context.args), _named(hw, overrides), json)
    problems = _problems(family, context.args, shapes, suite)
    if hw is None:
        raise UserError("Missing option '--hw' (see kernelcast tune --help)")
    chip = _chip(hw, overrides)
    database = None if db is None else Database(db)
    order = Order(chip, Effort(max(simulate, top), top), None if database is None else envelope / 100)
    if shapes is None and suite is None:
        _one(order, problems[0], database, again, jobs, json)
    else:
        _many(order, problems, database, again, jobs, json)


def _needed(db: Path | None, option: str) -> Database:
    from simulator.tuning.database import Database

    if db is None:
        raise UserError(f"{option} needs the database: --db FILE")
    return Database(db, must_exist=True)


def _refuse_options(options: Sequence[str]) -> None:
    if options:
        raise UserError(f"tune: option '{options[0]}' does not go with --export, --shapes or --suite")


def _named(hw: str | None, overrides: list[str] | None) -> Chip | None:
    from simulator.hw.loader import load_hw
    from simulator.tuning.query import Chip

    if hw is None:
        return None
    chip = load_hw(hw, tuple(overrides or ()))
    return Chip(chip.name, chip.digest())


def _chip(hw: str, overrides: list[str] | None) -> HardwareConfig:
    from simulator.hw.loader import load_hw
    from simulator.validation.warm_up import ensure_compiled

    chip = load_hw(hw, tuple(overrides or ()))
    chip.execution_sections()
    ensure_compiled(hw, announce_compilation)
    return chip


def _problems(family: str, options: list[str], shapes: Path | None, suite: Path | None) -> list[BaseModel]:
    from simulator.tuning.batch import distinct, read_shapes

    if shapes is not None and suite is not None:
        raise UserError("give --shapes or --suite, not both")
    if shapes is None and suite is None:
        return [_problem(family, options)]
    _refuse_options(options)
    if shapes is not None:
        return distinct(read_shapes(shapes, family))
    from simulator.study.suite import problems_of_suite

    assert suite is not None
    return distinct(problems_of_suite(suite))


def _problem(family: str, options: list[str]) -> BaseModel:
    from simulator.cli.design_options import values_from_options
    from simulator.tuning.families import parse_problem, tunable

    where = f"tune {family}"
    return parse_problem(values_from_options(tunable(family).problem, where, family, options), where)


def _one(order: Order, problem: BaseModel, database: Database | None, again: bool, jobs: int, as_json: bool) -> None:
    """Tune one problem, with its simulations spread over the workers."""
    from simulator.report.tune_text import render
    from simulator.tuning.batch import Processes, tune_one
    from simulator.tuning.families import title
    from simulator.tuning.query import Chip

    kept = None if database is None or again else database.get(order.hw.digest(), problem)
    if kept is not None and database is not None:
        stderr.print(f"{database.path} holds this problem; --again tunes it again")
        return _answer(database, problem, Chip(order.hw.name, order.hw.digest()), as_json)
    left = iter(range(order.n_jobs))
    with progress(title(problem), order.n_jobs) as advance:

        def done() -> None:
            if next(left, None) is not None:
                advance()

        with Processes(jobs, done) as run:
            outcome = tune_one(order, problem, run)
    if outcome.tuned is None:
        raise UserError(outcome.failure)
    if database is not None and outcome.entry is not None:
        database.put(outcome.entry)
    if as_json:
        emit_json(_document(outcome))
    else:
        stdout().print(render(outcome.tuned, order.effort.n_whole))


def _document(outcome: Outcome) -> dict[str, Any]:
    tuned: Tuned | None = outcome.tuned
    assert tuned is not None
    document = tuned.to_json()
    if outcome.entry is not None:
        document |= {"envelope": outcome.entry.envelope, "fallback": outcome.entry.fallback}
    return document


def _many(
    order: Order, problems: Sequence[BaseModel], database: Database | None, again: bool, jobs: int, as_json: bool
) -> None:
    """Tune many problems, each finished one kept at once; what the database holds is not tuned again."""
    from simulator.report.tune_text import batch_line
    from simulator.tuning.batch import tune_all
    from simulator.tuning.families import title

    held = [] if database is None or again else [p for p in problems if database.get(order.hw.digest(), p) is not None]
    if held:
        stderr.print(f"{len(held)} of {len(problems)} problems are in the database already; --again tunes them again")
    asked = [problem for problem in problems if problem not in held]
    with progress("Tuning", len(asked)) as advance:

        def done(outcome: Outcome) -> None:
            if database is not None and outcome.entry is not None:
                database.put(outcome.entry)
            advance(title(outcome.problem))

        outcomes = tune_all(order, asked, jobs, done)
    failed = [one for one in outcomes if one.tuned is None]
    if as_json:
        emit_json(
            {
                "tuned": [_document(one) for one in outcomes if one.tuned is not None],
                "failed": [{"problem": one.problem.model_dump(exclude_none=True), "reason": one.failure} for one in failed],
                "held": len(held),
            }
        )
    else:
        for one in outcomes:
            stdout().print(batch_line(one.tuned) if one.tuned is not None else f"{title(one.problem)}: {one.failure}")
    if failed:
        raise typer.Exit(FAILED)


def _answer(database: Database, asked: BaseModel, chip: Chip | None, as_json: bool) -> None:
    from simulator.report.tune_text import render_answer
    from simulator.tuning.families import precision_of, shape_of
    from simulator.tuning.query import query

    problem: Any = asked
    found = query(database, problem.kind, precision_of(problem), shape_of(problem), chip)
    if as_json:
        emit_json(found.to_json())
    else:
        stdout().print(render_answer(found))


def _export(database: Database, chip: Chip | None, path: Path) -> None:
    from simulator.tuning.export import export
    from simulator.tuning.query import one_chip

    require_writable(path)
    entries = one_chip(database.entries(), chip, database.path)
    atomic_write(path, export(entries, path))
    stdout().print(f"{len(entries)} designs written to {path}")
