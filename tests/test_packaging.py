"""What a stranger gets from ``pip install``: a client that needs msgpack and nothing else, and the rest beside it."""

import ast
import json
import re
import sys
import zipfile
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
import tomllib
from drafts import draft, number, text
from installing import PACKAGES, REPOSITORY, SMALL, build_wheel, copy_of_sources, install, printed, run

import ldp_client
import ldp_protocols
from ldp_protocols import Campaign

LARGEST_WHEEL = 120_000
TOOLS = ("ldp_client/command", "ldp_client/relay", "ldp_client/testing", "protocols/ldp_protocols/drafting", "protocols/ldp_protocols/command_line")
"""What the wheel for devices leaves out: what no device runs."""

OFFERED = ("ldp_client.aio", "ldp_client.errors", "ldp_client.network.transport", "ldp_client.storage.contract")
"""What docs/client.md offers to apps beside the names of the packages."""

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
COMPILE = """
from ldp_protocols import Campaign, LdpError
try:
    Campaign.compile({})
except LdpError as error:
    assert error.code == "not-installed"
    print(error)
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

DEVICE = ("protocols", "ldp_client")
CITED = {"Yilmaz": 2019, "Wang": 2017, "Vaidya": 2013, "Zafarani": 2020, "Marchioro": 2022}


def modules_of(packages):
    files = {str(path.relative_to(REPOSITORY)) for top in packages for path in (REPOSITORY / top).rglob("*.py*")}
    return {name for name in files if name.endswith((".py", ".pyi"))}


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def installed_names(environment: Path) -> set[str]:
    listed = printed([environment / "python", "-m", "pip", "list", "--format", "json"])
    return {package["name"] for package in json.loads(listed)} - {"pip", "setuptools", "wheel"}


class _Untyped(ast.NodeTransformer):
    """Takes away what is for readers and type checkers: texts that stand alone, types, what is imported for types."""

    def __init__(self, *, public: bool) -> None:
        self.public = public
        """Whether to take types of private functions only."""
        self.inside: list[str] = []

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        private = node.name.startswith("_") and not node.name.endswith("__")
        before, self.public = self.public, self.public and not private
        if not self.public:
            node.returns = None
            for argument in (one for one in ast.walk(node.args) if isinstance(one, ast.arg)):
                argument.annotation = None
        self.inside.append("function")
        self.generic_visit(node)
        self.inside.pop()
        self.public = before
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name of its base class

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.inside.append("class")
        self.generic_visit(node)
        self.inside.pop()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if self.public:
            return node
        if self.inside[-1:] == ["class"]:
            # What makes a field is that it has a type, whichever; what has this one is none.
            if not ast.unparse(node.annotation).startswith("ClassVar"):
                node.annotation = ast.Constant(None)
            return node
        return node if node.value is None else ast.Assign([node.target], node.value)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        for_types = ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse
        return None if for_types and not self.public else self.generic_visit(node)


def program(source: bytes, *, public: bool) -> str:
    """What a module does: all of it but what is for readers and, unless ``public``, for type checkers."""
    tree = _Untyped(public=public).visit(ast.parse(source))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and not public:
            node.names = [one for one in node.names if (one.asname or one.name) in used]
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and not node.names)]
    return ast.dump(tree)


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
def test_the_two_distributions_hold_the_licence_share_no_file_and_hold_every_module_together(wheel, small_wheel):
    for made in (wheel, small_wheel):
        with zipfile.ZipFile(made) as archive:
            (licence,) = (name for name in archive.namelist() if name.endswith("/LICENSE"))
            assert "Apache License" in archive.read(licence).decode()
    whole, small = files_of(wheel), files_of(small_wheel)
    assert not whole & small
    modules = {name for name in modules_of(PACKAGES) if name.endswith(".py")}
    markers = {f"{top}/py.typed" for top in PACKAGES}
    assert modules | markers <= whole | small


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
def test_the_wheel_for_devices_is_below_120_kb_and_holds_every_module_that_a_device_runs(small_wheel):
    assert small_wheel.stat().st_size < LARGEST_WHEEL
    run_by_devices = {name for name in modules_of(DEVICE) if not name.startswith(TOOLS)}
    assert files_of(small_wheel) - {f"{top}/py.typed" for top in DEVICE} == run_by_devices


@pytest.mark.install
def test_the_wheel_for_devices_holds_the_programs_of_the_repository_and_the_types_that_an_app_meets(small_wheel):
    met = {getattr(package, name).__module__ for package in (ldp_client, protocols) for name in package.__all__}
    met |= {"ldp_client", "protocols", *OFFERED}
    with zipfile.ZipFile(small_wheel) as archive:
        for name in sorted(files_of(small_wheel)):
            public = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") in met
            shipped, source = archive.read(name), (REPOSITORY / name).read_bytes()
            assert program(shipped, public=public) == program(source, public=public), name
            assert b'"""' not in shipped


@pytest.mark.install
def test_the_client_works_where_the_wheel_for_devices_is_all_there_is(device_environment, tmp_path):
    assert installed_names(device_environment) == {"ldp-bayes-client", "msgpack"}
    python = device_environment / "python"
    contributed = printed([python, "-c", CONTRIBUTE], cwd=tmp_path)
    assert contributed.split() == ["3", "9202"]
    compiled = run([python, "-c", COMPILE], cwd=tmp_path)
    assert (compiled.returncode, compiled.stdout.count("pip install ldp-bayes")) == (0, 1), compiled.stderr
    printed([python, "-c", OPEN], cwd=tmp_path)
    command = run([python, "-m", "ldp_client", "status"], cwd=tmp_path)
    assert (command.returncode, command.stderr.count("pip install ldp-bayes")) == (2, 1)


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
    assert {name: int(year) for name, year in first} == CITED
    (version,) = re.findall(r"^version: (\S+)$", cited, re.MULTILINE)
    assert f'\nversion = "{version}"\n' in (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("package", ["protocols", "ldp_client", "simulations"])
def test_modules_of_a_package_need_no_other_in_a_circle(package):
    graph = grimp.build_graph(package)
    needs = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    # Raises CycleError where there is no order. Types, and what functions import, count too.
    assert package in list(TopologicalSorter(needs).static_order())


def test_typescript_modules_need_no_other_in_a_circle():
    needs = {
        str(file): {str((file.parent / name).resolve()) for name in re.findall(r'"(\.[^"]+)\.js"', file.read_text())}
        for file in (path.resolve() for path in (REPOSITORY / "javascript" / "src").rglob("*.ts"))
    }
    needs = {file.removesuffix(".ts"): others for file, others in needs.items()}
    assert set().union(*needs.values()) <= set(TopologicalSorter(needs).static_order()) == set(needs)
