"""The program: what all commands hang on."""

import typer

app = typer.Typer(
    name="ode2opt",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Learn optimisation methods from differential equations; use them on streams of problems; "
    "know what is proved.",
    epilog="Add --debug to any command to see the traceback of an error.",
)
