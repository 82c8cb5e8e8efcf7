"""Tell whether a release can be tagged: one version and one date everywhere, a clean clone.

    python tools/release.py    the notes of the release, or one line for each thing that is missing

Reads pyproject.toml, the first section of CHANGELOG.md and CITATION.cff, and asks git. Changes
nothing: RELEASING.md says what to do by hand. Ends with an error where something is missing.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
HEADING = re.compile(r"^## (?P<version>\S+)(?: \((?P<date>[^)]*)\))?$", re.MULTILINE)
VERSION = re.compile(r"\d+\.\d+\.\d+")
DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Section(NamedTuple):
    """The first section of a changelog: its version, its date or "unreleased", its text."""

    version: str
    date: str
    text: str


def first_section(changelog: str) -> Section:
    """Return the newest section of a changelog; its heading is ``## 0.2.0 (2026-11-18)``."""
    first, *others = [*HEADING.finditer(changelog)] or [None]
    if first is None:
        raise SystemExit("CHANGELOG.md has no heading such as ## 0.2.0 (unreleased).")
    end = others[0].start() if others else len(changelog)
    text = changelog[first.end() : end].strip()
    return Section(first["version"], first["date"] or "unreleased", text)


def versions(root: Path) -> dict[str, str]:
    """Return the version that each file names."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = first_section((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    return {
        "pyproject.toml": project["version"],
        "CHANGELOG.md": changelog.version,
        "CITATION.cff": str(citation["version"]),
    }


def disagreements(root: Path) -> list[str]:
    """Return a sentence where the versions of a clone differ or are none; must always be empty."""
    found = versions(root)
    if len(set(found.values())) > 1:
        told = ", ".join(f"{file} has {version}" for file, version in found.items())
        return [f"The versions differ: {told}."]
    version = found["pyproject.toml"]
    return [] if VERSION.fullmatch(version) else [f"The version {version} is not like 0.2.0."]


def undone(root: Path) -> list[str]:
    """Return what is missing before the release can be tagged, a sentence each."""
    section = first_section((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    found = disagreements(root)
    if not section.text:
        found.append(f"CHANGELOG.md says nothing about {section.version}.")
    if not DATE.fullmatch(section.date):
        found.append(f"CHANGELOG.md has no date: write ## {section.version} (YYYY-MM-DD).")
    elif str(citation.get("date-released")) != section.date:
        found.append(f"CITATION.cff needs the changelog's date: date-released: {section.date}.")
    return found + git_undone(root, f"v{section.version}")


def git_undone(root: Path, tag: str) -> list[str]:
    """Return what git says against a tag: files that differ, a tag at another commit."""
    found = []
    if git(root, "status", "--porcelain", "--untracked-files=no"):
        found.append("Some files differ from the last commit: commit them.")
    tagged = git(root, "rev-list", "-n", "1", tag) if git(root, "tag", "--list", tag) else None
    if tagged not in (None, git(root, "rev-parse", "HEAD")):
        found.append(f"The tag {tag} is at another commit: a release is never moved.")
    return found


def git(root: Path, *arguments: str) -> str:
    """Return what git prints."""
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(root: Path = ROOT) -> None:
    """Print the notes of a release that can be tagged, or end with what is missing."""
    if missing := undone(root):
        raise SystemExit("\n".join(missing))
    section = first_section((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    print(f"{section.text}\n\ngit tag -a v{section.version} -m 'ode2opt {section.version}'")


if __name__ == "__main__":
    main()
