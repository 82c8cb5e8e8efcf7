"""What a release rests on: one version everywhere, and workflows that call make."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
import safetensors
import yaml
from support import git, module_of

from ode2opt import Memory, Method, Schedule
from ode2opt.integrations.sklearn import LogisticRegression

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def release():
    return module_of(ROOT / "tools/release.py")


@pytest.fixture
def clone(tmp_path):
    """A repository that is ready to be tagged 0.2.0."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    write(tmp_path, "pyproject.toml", '[project]\nversion = "0.2.0"\n')
    write(tmp_path, "CITATION.cff", "version: 0.2.0\ndate-released: 2026-11-18\n")
    changelog = "# Changelog\n\n## 0.2.0 (2026-11-18)\n- A line.\n\n## 0.1.0\n- Older.\n"
    write(tmp_path, "CHANGELOG.md", changelog)
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "Release 0.2.0")
    return tmp_path


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


def test_all_files_name_one_version(release):
    assert release.disagreements(ROOT) == []


def test_a_release_that_is_whole_prints_its_notes(release, clone, capsys):
    release.main(clone)
    assert capsys.readouterr().out == "- A line.\n\ngit tag -a v0.2.0 -m 'ode2opt 0.2.0'\n"
    git(clone, "tag", "v0.2.0")
    assert release.undone(clone) == []  # as in the workflow that the tag starts


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("pyproject.toml", "0.2.0", "0.3.0", "pyproject.toml has 0.3.0, CHANGELOG.md has 0.2.0"),
        ("CITATION.cff", "0.2.0", "0.1.0", "CITATION.cff has 0.1.0"),
        ("CHANGELOG.md", "## 0.2.0", "## 0.2.1", "CHANGELOG.md has 0.2.1"),
        ("CHANGELOG.md", "2026-11-18", "unreleased", "has no date"),
        ("CHANGELOG.md", " (2026-11-18)", "", "has no date"),
        ("CHANGELOG.md", "- A line.", "", "says nothing about 0.2.0"),
        ("CITATION.cff", "2026-11-18", "2026-11-17", "date-released: 2026-11-18"),
        ("CITATION.cff", "date-released: 2026-11-18", "", "date-released: 2026-11-18"),
    ],
)
def test_what_is_missing_is_told(release, clone, file, old, new, told):
    write(clone, file, (clone / file).read_text().replace(old, new, 1))
    with pytest.raises(SystemExit, match=re.escape(told)):
        release.main(clone)
    assert "Some files differ from the last commit: commit them." in release.undone(clone)


def test_a_tag_is_never_moved(release, clone):
    git(clone, "tag", "v0.2.0")
    git(clone, "commit", "--allow-empty", "-m", "One more")
    assert release.undone(clone) == [
        "The tag v0.2.0 is at another commit: a release is never moved."
    ]


def jobs():
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items():
            yield pytest.param(job, id=f"{path.stem}-{name}")


@pytest.mark.parametrize("job", list(jobs()))
def test_every_job_calls_targets_of_the_makefile(job):
    """What CI does can be run at home, and a target that is renamed is noticed."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        program, *arguments = command.split()
        assert program == "make"
        names = [word for word in arguments if "=" not in word]
        if names == ['"$TARGET"']:
            names = [row["target"] for row in job["strategy"]["matrix"]["include"]]
        assert set(names) <= targets


def test_the_tests_run_on_every_python_that_the_package_names():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: 3." in line]
    checks = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8"))
    rows = checks["jobs"]["tests"]["strategy"]["matrix"]["include"]
    assert [row["python"] for row in rows] == named
    assert {row["target"] for row in rows} == {"test", "coverage"}
    assert project["requires-python"] == f">={named[0]}"
    assert checks["jobs"]["oldest"]["steps"][1]["with"]["python-version"] == named[0]


def test_what_is_cited_is_the_paper_of_the_documentation():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (paper,) = cited["references"]
    mathematics = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    assert paper["title"] in mathematics
    assert paper["identifiers"][0]["value"] in mathematics
    assert all(author["family-names"] in mathematics for author in paper["authors"])
    assert cited["license"] == "MIT"


def test_the_policy_names_the_formats_that_are_written(tmp_path):
    policy = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = np.arange(12.0).reshape(6, 2) % 5
    method = Method(Schedule.heavy_ball(0.5, 0.5, 3), "test", 1e-3)
    model = LogisticRegression().fit(rows, [0, 1, 0, 1, 1, 0])
    for kind, written in {"method": method, "memory": Memory(), "model": model}.items():
        path = tmp_path / f"{kind}.safetensors"
        written.save(path)
        with safetensors.safe_open(path, "np") as file:
            (about,) = map(json.loads, file.metadata().values())
        assert f"\n| {kind} | {about['version']} |\n" in policy


def test_every_file_that_contributing_names_is_there():
    """Where a loss, a method or a metric is added: paths in backticks, but for patterns."""
    for name in ("CONTRIBUTING.md", "RELEASING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        paths = re.findall(r"`((?:ode2opt|tests|docs|tools|benchmarks)/[\w./-]+)`", text)
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_tests_mirror_the_folders_of_the_package():
    package = {path.parent.name for path in (ROOT / "ode2opt").glob("*/__init__.py")}
    tested = {path.name for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py"))}
    assert package - tested == {"cli", "coefficients"}
    assert len([*(ROOT / "tests").glob("test_cli_*.py")]) > 1
    assert tested - package == {"cli_predict", "fuzz"}
