"""Whatever a method's file says of its family: the exported C is that of any other family."""

import os
import shutil
import subprocess

import numpy as np
import pytest

from ode2opt import Guard, Method, Schedule
from ode2opt.integrations.export import to_c
from ode2opt.proofs.table import Table

COUNT, BATCH = 500, 125  # hostile names, and how many of them a compiler gets at a time
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O0", "-c")
PIECES = (
    "*/", "/*", "//", "*\\", "\\*", "*\\/", "/\\*", "*\\\n/", "*??/", "??/\n", "\\\n", "\n", "\r\n",
    "\v", "\x1a", "\0", "\x85", "\u2028", "\u202e", "\uff0f", "\U0001f600", "\ud800", "@TABLE@",
    "@LOWER@", "%:", "<:", '"', "'", "#", "\n#if 0\n", "\n#error x\n", " ", "a5a", "-->", "$(id)",
    '\n#include "/etc/passwd"\n', '_Pragma("GCC poison double")', "int evil;", '__asm__("evil:");',
    'static int evil __attribute__((section("evil"), used)) = 1;', "int evil(void) { return 1; }",
)  # fmt: skip


def families(rng):
    """Names that try to leave a comment; the first is one that did."""
    yield "x *\\ int evil(void); int evil(void) { return 1; } \\* y"
    for _ in range(COUNT - 1):
        yield "".join(PIECES[k] for k in rng.integers(len(PIECES), size=rng.integers(2, 12)))


def plain_method(family):
    return Method(Schedule(*np.ones((3, 2))), family, 1e-3, "family", 1.0)


def with_prox(family):
    guard, table = Guard(fallback="fista"), Table.fista(2)
    return Method(None, family, 1e-3, "family", 1.0, guard=guard, proximal=table)


MAKERS = (plain_method, with_prox)


def compiled(cc, folder, names):
    """The object file of a program that uses the headers of all these families."""
    folder.mkdir()
    for k, name in enumerate(names):
        for file, text in to_c(MAKERS[k % 2](name), f"m{k}").items():
            (folder / file).write_text(text, encoding="utf-8")
    numbers = range(len(names))
    lines = [
        *(f'#include "ode2opt_m{k}.h"' for k in numbers),
        "extern const char *(*const messages[])(int);",
        "const char *(*const messages[])(int) = {",
        *(f"    ode2opt_m{k}_message," for k in numbers),
        "};",
    ]
    (folder / "all.c").write_text("\n".join(lines) + "\n")
    done = subprocess.run([cc, *STRICT, "all.c"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[:1000]
    return folder / "all.o"


@pytest.fixture(scope="module")
def tools():
    """The C compiler and ``nm``; in CI they must be there."""
    found = [shutil.which(name) for name in ("cc", "nm")]
    if None in found and os.environ.get("CI"):
        pytest.fail("the tests of exported C need cc and nm")
    if None in found:
        pytest.skip("needs cc and nm")
    return found


def test_no_family_puts_anything_into_the_compiled_header(tools, tmp_path):
    """Strict C, our symbols alone; code, data and sections are those of a harmless family."""
    cc, nm = tools
    names = list(families(np.random.default_rng(0)))
    due = compiled(cc, tmp_path / "harmless", ["lpp a5a"] * BATCH)
    for first in range(0, COUNT, BATCH):
        made = compiled(cc, tmp_path / str(first), names[first : first + BATCH])
        listed = subprocess.run([nm, made], capture_output=True, text=True, check=True).stdout
        symbols = {line.split()[-1].removeprefix("_") for line in listed.splitlines()}
        ours = {name for name in symbols if name.startswith("ode2opt_m")}
        assert len(ours) > BATCH
        assert symbols - ours == {"messages"}
        assert made.read_bytes() == due.read_bytes()


@pytest.mark.parametrize("make", MAKERS)
def test_a_family_in_a_header_has_whitelisted_characters_only(make):
    """The rest of the text is that of any family; the name is one line of it."""
    header, _ = to_c(make("PLACE"), "m").values()
    before, after = header.split("PLACE")
    for name in families(np.random.default_rng(1)):
        text, _ = to_c(make(name), "m").values()
        assert text.startswith(before)
        assert text.endswith(after)
        said = text[len(before) : len(text) - len(after)]
        assert all(c.isascii() and (c.isalnum() or c in " .,:;-_()=") for c in said)
