"""What is packaged and how the project is run on a forge: facts that are stated in two places agree."""

from __future__ import annotations

import itertools
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "data"
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"
WORKFLOWS = ROOT / ".github" / "workflows"
RECIPE = ROOT / "packaging" / "conda" / "recipe.yaml"

FORM_KEYS = {"name", "description", "title", "labels", "assignees", "projects", "type", "body"}
ITEM_KEYS = {"type", "id", "attributes", "validations"}
ATTRIBUTES = {"label", "description", "placeholder", "value", "render", "options", "multiple", "default"}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def read_yaml(path: Path) -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML isn't installed")
    if not path.exists():
        pytest.skip(f"{path.relative_to(ROOT)} isn't in this tree")
    return yaml.safe_load(path.read_text("utf-8"))


@pytest.mark.parametrize("name", ["bug.yml", "idea.yml"])
def test_issue_forms_have_the_keys_that_a_forge_knows(name: str) -> None:
    """A comma in a text without quotes begins another key."""
    form = read_yaml(FORMS / name)
    assert set(form) <= FORM_KEYS
    for item in form["body"]:
        assert set(item) <= ITEM_KEYS
        assert set(item["attributes"]) <= ATTRIBUTES
        assert all(isinstance(value, str) for value in item["attributes"].values())


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_tests_data_is_listed_with_its_size() -> None:
    page = (DATA / "README.md").read_text()
    rows = re.findall(r"^\| \[(\w+)\]\(\1/README\.md\) \| ([\d.]+) (KB|MB) \|", page, re.MULTILINE)
    assert [name for name, _, _ in rows] == sorted(path.name for path in DATA.iterdir() if path.is_dir())
    for name, number, unit in rows:
        stated = float(number) * (1 << (20 if unit == "MB" else 10))
        assert abs(size(DATA / name) - stated) < stated / 8, name


@pytest.mark.parametrize(
    "folder", sorted(path for path in DATA.iterdir() if path.is_dir()), ids=lambda it: it.name
)
def test_the_origin_of_each_file_is_stated(folder: Path) -> None:
    """By its name, the part of it that differs, or a pattern."""
    page = (folder / "README.md").read_text()
    stated = re.findall(r"`([^`\n]+)`", page) + re.findall(r"^\| ([\w-]+) \|", page, re.MULTILINE)
    for path in folder.iterdir():
        stem = (
            path.name.partition(".")[0]
            if "__" not in path.name
            else path.name.rpartition("__")[2].split(".")[0]
        )
        named = {path.name, stem, f"{path.name}/"} & set(stated)
        assert named or path.name == "README.md" or any("*" in one and path.match(one) for one in stated), (
            path.name
        )


def test_the_links_of_the_package_indexs_page_lead_to_the_forge() -> None:
    """Its files are those that README links to; only they change."""
    script = ROOT / "packaging" / "absolute_links.py"
    if not script.exists():
        pytest.skip("the scripts of packaging aren't in this tree")
    readme = (ROOT / "README.md").read_text("utf-8")
    names = runpy.run_path(str(script))
    page = names["absolute"](readme)
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len(links) > 10
    assert all(link.startswith("https://") for link in links)
    assert names["FILES"] == project()["project"]["urls"]["Homepage"] + "/blob/main/"
    assert page.replace(names["FILES"], "") == readme
    assert names["absolute"](page) == page


def test_each_runner_builds_wheels_for_itself() -> None:
    """Runners have no emulator, and two wheels of one name would overwrite each other."""
    settings = project()["tool"]["cibuildwheel"]
    assert settings["linux"]["archs"] == settings["macos"]["archs"] == ["native"]


def workflows() -> list[Path]:
    paths = sorted(WORKFLOWS.glob("*.yml"))
    if not paths:
        pytest.skip(".github/workflows isn't in this tree")
    return paths


def test_actions_are_pinned_by_commit() -> None:
    """A tag can be moved to other code; the version is a comment for people and their tools."""
    lines = [line.strip() for path in workflows() for line in path.read_text("utf-8").splitlines()]
    used = [line.removeprefix("- ") for line in lines if line.removeprefix("- ").startswith("uses:")]
    assert len(used) > 20
    for line in used:
        assert re.fullmatch(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_one_job_may_publish_and_may_do_nothing_else() -> None:
    """It runs no code of the tree and installs nothing; every other job reads the tree and keeps no token."""
    for path in workflows():
        workflow = read_yaml(path)
        assert workflow["permissions"] == {"contents": "read"}, path.name
        for name, job in workflow["jobs"].items():
            if name == "publish":
                assert job["permissions"] == {"id-token": "write"}
                assert [set(step) <= {"uses", "with"} for step in job["steps"]] == [True, True]
                assert job["steps"][0]["with"]["pattern"] == "{wheels-*,sdist,pure}"
                continue
            if name == "publish-site":
                assert job["permissions"] == {"contents": "write"}
                commands = [step["run"] for step in job["steps"] if "run" in step]
                assert commands[0].startswith("python3 packaging/site_versions.py ")
                assert all(line.startswith("git ") for line in commands[1].splitlines())
                continue
            assert "permissions" not in job, name
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False, name


def test_what_builds_a_release_is_pinned_by_hash() -> None:
    """Each requirement is in the lock, in one version, with hashes; every build of a release uses it."""
    lock = (ROOT / "packaging" / "build-requirements.txt").read_text("utf-8")
    pin = re.compile(r"^([a-z-]+)==[\w.]+(?: ;[^\\\n]*)? \\\n    --hash=sha256:[0-9a-f]{64}", re.MULTILINE)
    locked = pin.findall(lock)
    assert locked == [line.split("==")[0] for line in lock.splitlines() if "==" in line]
    asked = (ROOT / "packaging" / "build-requirements.in").read_text("utf-8").split()
    assert {re.split(r"[<>=]", line)[0] for line in asked} <= set(locked)
    assert set(project()["build-system"]["requires"]) <= set(asked)
    built = project()["tool"]["cibuildwheel"]
    assert built["build-frontend"]["args"] == ["--no-isolation"]
    assert "--require-hashes" in built["before-build"]
    release = next(path for path in workflows() if path.name == "release.yml").read_text("utf-8")
    builds = re.findall(r"run: python (?:-m build|packaging/pure_wheel.py) .*", release)
    assert len(builds) == 2
    assert all("isolation" in line for line in builds)


@pytest.mark.skipif(not (ROOT / ".ci" / "release").is_file(), reason=".ci isn't in this tree")
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [([], "usage: "), (["1"], "not a version: 1"), (["9.9.9", "--psh"], "expected --push")],
)
def test_a_release_refuses_what_it_does_not_know(arguments: list[str], reason: str) -> None:
    """Before it changes anything: a release is one command, and pushes only where it is told to."""
    run = subprocess.run([ROOT / ".ci" / "release", *arguments], capture_output=True, text=True, check=False)
    assert run.returncode
    assert reason in run.stderr


def test_the_conda_recipe_is_of_this_version_and_these_requirements() -> None:
    recipe, stated = read_yaml(RECIPE), project()["project"]
    assert recipe["context"]["version"] == stated["version"]
    assert recipe["about"]["summary"] == stated["description"]
    (command, where), *_ = stated["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{command} = {where}"]
    needed = ["python" + stated["requires-python"], *stated["dependencies"]]
    assert [one.replace(" ", "") for one in recipe["requirements"]["run"]] == needed
    assert recipe["requirements"]["host"][-1].replace(" ", "") == project()["build-system"]["requires"][0]
    extras = stated["optional-dependencies"]
    optional = {one for name in ("cli", "arrow", "spark") for one in extras[name]}
    assert {one.replace(" ", "") for one in recipe["requirements"]["run_constraints"]} <= optional


def test_the_conda_recipe_has_its_variants() -> None:
    """rattler-build reads them beside the recipe, and refuses a recipe that names another one."""
    variants = read_yaml(RECIPE.with_name("variants.yaml"))
    tested = [
        line for line in (ROOT / ".ci" / "pythons").read_text("utf-8").split("\n") if line[:1].isdigit()
    ]
    assert [version.partition(".*")[0] for version in variants["python"]] == tested
    assert 'stdlib("c")' in RECIPE.read_text("utf-8")
    for name in ("c_stdlib", "c_stdlib_version"):
        assert {choice["if"]: bool(choice["then"]) for choice in variants[name]} == {
            "linux": True,
            "osx": True,
        }
    (build,) = read_yaml(RECIPE)["requirements"]["build"]
    assert build["if"] == "unix"


def test_sites_of_versions_stand_side_by_side(tmp_path: Path) -> None:
    publish = runpy.run_path(str(ROOT / "packaging" / "site_versions.py"))["publish"]
    site, published = tmp_path / "site", tmp_path / "published"
    site.mkdir()
    published.mkdir()
    with pytest.raises(ValueError, match="no index"):
        publish(site, published, "0.1.0")
    for version in ("0.9.0", "0.10.0", "0.11.0rc2", "0.11.0rc10"):
        (site / "index.html").write_text(version)
        publish(site, published, version)
    assert (published / "0.9.0" / "index.html").read_text() == "0.9.0"
    assert "url=0.10.0/" in (published / "index.html").read_text()
    listed = re.findall(r'href="([^"]+)/"', (published / "versions.html").read_text())
    assert listed == ["0.11.0rc10", "0.11.0rc2", "0.10.0", "0.9.0"]
    for version, why in (("0.9.0", "already"), ("../x", "no version"), ("latest", "no version")):
        with pytest.raises(ValueError, match=why):
            publish(site, published, version)
    publish(site, published, "0.11.0")
    assert "url=0.11.0/" in (published / "index.html").read_text()


def test_the_container_recipe_names_what_there_is() -> None:
    """No image is built here, but the version, extras, commands and options that the recipe names exist."""
    recipe = (ROOT / "Containerfile").read_text("utf-8")
    bases = re.findall(r"^FROM (\S+)", recipe, re.MULTILINE)
    (version,) = {re.fullmatch(r"docker\.io/library/python:(3\.\d+)-slim", base)[1] for base in bases}  # type: ignore[index]
    assert f"Programming Language :: Python :: {version}" in project()["project"]["classifiers"]
    (extras,) = re.findall(r"coordwire-\*\.whl\)\[(.+?)\]", recipe)
    assert set(extras.split(",")) <= project()["project"]["optional-dependencies"].keys()
    (entry,) = re.findall(r'^ENTRYPOINT \["(.+)"\]$', recipe, re.MULTILINE)
    assert entry in project()["project"]["scripts"]
    copied = re.findall(r"^COPY (?:--from=(\w+) )?(\S+)", recipe, re.MULTILINE)
    assert copied == [("", "."), ("build", "/wheels")]
    assert "AS build" in recipe
    examples = [line.rpartition(" coordwire ")[2] for line in recipe.splitlines() if "podman run" in line]
    assert len(examples) == 4
    for words in map(str.split, examples):
        command = list(itertools.takewhile(str.isalpha, words[:2]))
        options = {word for word in words if re.match("--[a-z]", word)}
        result = subprocess.run(
            [sys.executable, "-m", "coordwire", *command, "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert options <= set(re.findall(r"--[a-z][a-z-]+", result.stdout)), words
