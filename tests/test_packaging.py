"""What a stranger gets from ``pip install``: the repository's files, a client on msgpack alone, the rest beside it."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from drafts import draft, number, text
from installing import REPOSITORY, SMALL, build_wheel, copy_of_sources, install, printed, run

from ldp_protocols import Campaign

LARGEST_WHEEL = 210 << 10

_ASKED = (text("u", "1", "2", missing=True), number("v", missing=True))
DOCUMENT = Campaign.compile(draft(*_ASKED, privacy={"epsilon": 1.0, "answers": "all"})).document

CONTRIBUTE = f"""
import ldp_client
from ldp_protocols import Campaign, encode_upload

campaign = Campaign.parse({DOCUMENT!r})
reports = ldp_client.perturb(campaign, {{"u": "1", "v": 0.5}}, "a")
upload = encode_upload(reports, campaign)
print(len(reports), upload[:2].hex())
"""
OPEN = """
import ldp_client, ldp_client.aio
for name in ldp_client.__all__:
    getattr(ldp_client, name)
with ldp_client.Device("device.db", max_total_epsilon=1) as device:
    assert not device.campaign("https://collect.example.org", "A" * 43, max_epsilon=1).status().contributed
    assert not device.status().problem
"""
"""Loads every module of a device, SQLite included."""

TYPED_APP = """
from ldp_client import Device, Event, Policy
from ldp_client.network.transport import Cancellation, Request, Response

class Own:
    begins_body = True
    def send(self, request: Request, timeout: float, cancellation: Cancellation | None = None) -> Response:
        return Response(200, {}, request.url.encode())

def told(event: Event) -> None:
    print(event.kind, event.count)

device = Device("a", max_total_epsilon=4, transport=Own(), policy=Policy(first_delay=1.0), on_event=told)
left: int = device.campaign("https://collect.example.org", "A" * 43, max_epsilon=1).withdraw().on_its_way
Device(3)
device.ledger().receipts = ()
reveal_type([one.title for one in device.sent()])
"""
"""Two mistakes, and one question to the type checker."""

APP = f"""
import benchmarks, examples, protocols, simulations, tests
from ldp_client import Device
from ldp_client.testing import FakeServer
from ldp_protocols import Campaign

assert protocols.Transport and simulations.OWN and tests.OWN and examples.OWN and benchmarks.OWN
with FakeServer() as server:
    campaign = server.publish(Campaign.parse({DOCUMENT!r}))
    device = Device("device.db", max_total_epsilon=1)
    part = device.campaign(server.url, campaign.id, max_epsilon=1)
    part.grant()
    part.contribute({{"u": "1", "v": 0.5}}, "a")
    assert device.run_once(10)
    print(server.counted(campaign.id))
"""
"""An app that owns every general name that a checkout of this project has at its top."""

CITED = {"Yilmaz": 2019, "Wang": 2017, "Vaidya": 2013, "Zafarani": 2020, "Marchioro": 2022}

PLACES = {"ldp_client": "", "ldp_protocols": "protocols", "ldp_aggregator": "", "ldp_simulations": "simulations"}
"""Each package's folder in the repository."""
DISTRIBUTIONS = {
    "ldp-bayes-client": {"ldp_client", "ldp_protocols"},
    "ldp-bayes": {"ldp_aggregator", "ldp_simulations"},
}


def files_of_repository(package: str) -> dict[str, bytes]:
    """What git would commit below a package, by the name that an installation gives it."""
    folder = REPOSITORY / PLACES[package]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", package]
    listed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    return {name: file.read_bytes() for name in listed.split("\0") if name and (file := folder / name).is_file()}


def files_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def installed_names(environment: Path) -> set[str]:
    listed = printed([environment / "python", "-m", "pip", "list", "--format", "json"])
    return {package["name"] for package in json.loads(listed)} - {"pip", "setuptools", "wheel"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    return build_wheel(copy_of_sources(folder / "sources"), folder)


@pytest.fixture(scope="session")
def small_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    return build_wheel(copy_of_sources(folder / "sources") / SMALL, folder)


@pytest.fixture(scope="session")
def environment(wheel: Path, small_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("environment"), small_wheel, wheel)


@pytest.fixture(scope="session")
def device_environment(small_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("device"), small_wheel)


@pytest.mark.install
def test_a_plain_installation_brings_a_client_that_works_msgpack_and_nothing_else(environment, tmp_path):
    assert installed_names(environment) == {"ldp-bayes", "ldp-bayes-client", "msgpack"}
    python = environment / "python"
    imported = printed([python, "-c", "import ldp_client; print(ldp_client.__file__)"], cwd=tmp_path)
    assert imported.startswith(str(environment.parent))
    assert printed([python, "-c", CONTRIBUTE], cwd=tmp_path).split() == ["3", "9202"]


@pytest.mark.install
def test_wheels_hold_the_licence_and_every_file_of_their_packages_byte_for_byte(wheel, small_wheel):
    for made, packages in ((small_wheel, "ldp-bayes-client"), (wheel, "ldp-bayes")):
        with zipfile.ZipFile(made) as archive:
            (licence,) = (name for name in archive.namelist() if name.endswith("/LICENSE"))
            assert archive.read(licence) == (REPOSITORY / "LICENSE").read_bytes()
        shipped = files_of(made)
        expected = {}
        for package in DISTRIBUTIONS[packages]:
            expected |= files_of_repository(package)
        assert sorted(shipped) == sorted(expected)
        assert [name for name in shipped if shipped[name] != expected[name]] == []
        assert {name.partition("/")[0] for name in shipped} == DISTRIBUTIONS[packages]


@pytest.mark.install
def test_the_whole_needs_the_client_of_its_own_version(wheel, small_wheel):
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        required = archive.read(metadata).decode()
    version = small_wheel.name.split("-")[1]
    assert f"Requires-Dist: ldp-bayes-client=={version}\n" in required
    assert f"\nVersion: {version}\n" in required


@pytest.mark.install
def test_the_aggregators_command_says_what_is_missing_in_a_plain_installation(environment, tmp_path):
    for command in (["ldp-aggregator"], ["python", "-m", "ldp_aggregator"]):
        answered = run([environment / command[0], *command[1:], "serve"], cwd=tmp_path)
        assert answered.returncode == 2
        assert "pip install 'ldp-bayes[aggregator]'" in answered.stderr
        assert "Traceback" not in answered.stderr


@pytest.mark.install
def test_the_clients_wheel_is_below_210_kib(small_wheel):
    assert small_wheel.stat().st_size < LARGEST_WHEEL


@pytest.mark.install
def test_the_client_and_its_command_work_where_its_wheel_and_msgpack_are_all_there_is(device_environment, tmp_path):
    assert installed_names(device_environment) == {"ldp-bayes-client", "msgpack"}
    python = device_environment / "python"
    contributed = printed([python, "-c", CONTRIBUTE], cwd=tmp_path)
    assert contributed.split() == ["3", "9202"]
    printed([python, "-c", OPEN], cwd=tmp_path)
    status = ["status", "https://collect.example.org", "A" * 43, "--storage", "device.db", "--json"]
    for command in ([device_environment / "ldp-client"], [python, "-m", "ldp_client"]):
        assert json.loads(printed([*command, *status], cwd=tmp_path))["sent"] == 0
    assert "ldp-client " in printed([device_environment / "ldp-client", "--version"], cwd=tmp_path)


@pytest.mark.install
def test_an_app_keeps_every_general_name_for_itself_and_contributes(environment, device_environment, tmp_path):
    (tmp_path / "protocols.py").write_text("class Transport: ...\n", encoding="utf-8")
    for name in ("simulations", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWN = True\n", encoding="utf-8")
    for name in ("examples", "benchmarks"):
        (tmp_path / f"{name}.py").write_text("OWN = True\n", encoding="utf-8")
    for device, programs in enumerate((environment, device_environment)):
        (tmp_path / "app.py").write_text(APP.replace("device.db", f"device{device}.db"), encoding="utf-8")
        assert printed([programs / "python", "app.py"], cwd=tmp_path) == "3\n"


@pytest.mark.install
@pytest.mark.parametrize("made", ["wheel", "small_wheel"])
def test_a_wheel_puts_no_general_name_beside_other_peoples_packages(made, request):
    with zipfile.ZipFile(request.getfixturevalue(made)) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert [top for top in tops if not top.startswith(("ldp_", "ldp-"))] == []


@pytest.mark.install
def test_the_wheel_for_devices_explains_what_an_app_calls(device_environment, tmp_path):
    program = (
        "import inspect, ldp_client\n"
        "for name in ldp_client.__all__:\n"
        "    found = getattr(ldp_client, name)\n"
        "    for one, what in ((name, found), *vars(found).items()) if inspect.isclass(found) else ((name, found),):\n"
        "        if not one.startswith('_') and (callable(what) or isinstance(what, property)):\n"
        "            assert inspect.getdoc(what), (name, one)\n"
    )
    printed([device_environment / "python", "-c", program], cwd=tmp_path)


@pytest.mark.install
def test_an_apps_type_checker_finds_the_types_in_the_wheel_for_devices(device_environment, tmp_path):
    (tmp_path / "app.py").write_text(TYPED_APP, encoding="utf-8")
    python = device_environment / "python"
    checked = run([sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "app.py"], cwd=tmp_path)
    told = [line.partition(": ")[2] for line in checked.stdout.splitlines()]
    assert [line.rpartition("[")[2] for line in told if line.startswith("error")] == ["call-arg]", "arg-type]", "misc]"]
    assert any(line.endswith(('"list[str]"', '"builtins.list[builtins.str]"')) for line in told), checked.stdout


def test_every_package_names_the_same_addresses_version_python_and_licence():
    places = (REPOSITORY / folder / "pyproject.toml" for folder in (Path(), SMALL))
    whole, small = (tomllib.loads(place.read_text(encoding="utf-8"))["project"] for place in places)
    for key in ("version", "requires-python", "license"):
        assert whole[key] == small[key]
    assert small["dependencies"] == ["msgpack>=1.1,<2"]
    urls = whole["urls"]
    assert urls == small["urls"]
    npm = json.loads((REPOSITORY / "javascript" / "package.json").read_text(encoding="utf-8"))
    assert (npm["homepage"], npm["repository"]["url"]) == (urls["Homepage"], f"git+{urls['Repository']}")
    assert urls["Homepage"] in (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_citation_file_names_the_five_sources_that_the_documentation_builds_on_and_the_version():
    cited = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    first = re.findall(r"    authors:\n      - \{family-names: (\w+),.*?\n    year: (\d+)\n", cited, re.DOTALL)
    assert {name: int(year) for name, year in first[: len(CITED)]} == CITED
    (version,) = re.findall(r"^version: (\S+)$", cited, re.MULTILINE)
    assert f'\nversion = "{version}"\n' in (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")


def test_modules_of_the_house_need_no_other_in_a_circle():
    """Imports at the top of a module, in its functions and for types alone count, and what a stub hands on."""
    graph = grimp.build_graph(*PLACES, exclude_type_checking_imports=False, cache_dir=None)
    needs = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    handed_on = 0
    for package, place in PLACES.items():
        for stub in (REPOSITORY / place / package).rglob("__init__.pyi"):
            name = ".".join(stub.parent.relative_to(REPOSITORY / place).parts)
            homes = re.findall(r"^from (\S+) import", stub.read_text(encoding="utf-8"), re.MULTILINE)
            needs[name] |= set(homes)
            handed_on += len(homes)
    assert handed_on
    assert {need.partition(".")[0] for others in needs.values() for need in others} == set(PLACES)
    order = list(TopologicalSorter(needs).static_order())  # Raises CycleError where there is none.
    assert set(order) == set(needs)


def test_typescript_modules_need_no_other_in_a_circle():
    needs = {
        str(file): {str((file.parent / name).resolve()) for name in re.findall(r'"(\.[^"]+)\.js"', file.read_text())}
        for file in (path.resolve() for path in (REPOSITORY / "javascript" / "src").rglob("*.ts"))
    }
    needs = {file.removesuffix(".ts"): others for file, others in needs.items()}
    assert set().union(*needs.values()) <= set(TopologicalSorter(needs).static_order()) == set(needs)
