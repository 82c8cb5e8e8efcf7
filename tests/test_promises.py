"""A page leads from each promise of the README to its test."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "promises.md").read_text()


def test_each_promise_of_the_readme_stands_on_the_page():
    _, _, section = (ROOT / "README.md").read_text().partition("## What is promised\n")
    promises = re.findall(r"(?m)^- (.+)", section)
    assert len(promises) > 5
    missing = [words for words in promises if words.partition(". ")[0].rstrip(".")[:60] not in PAGE]
    assert not missing, missing


def test_each_test_that_the_page_names_is_there():
    named = re.findall(r"(?m)`(tests/\S+\.py)` \|(.*)\|$", PAGE)
    tests = [(file, name) for file, names in named for name in re.findall(r"`(test_\w+)`", names)]
    assert len(tests) > 15
    gone = [at for at in tests if f"def {at[1]}(" not in (ROOT / at[0]).read_text()]
    assert not gone, gone
