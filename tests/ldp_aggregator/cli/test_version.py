"""The first questions of whoever uses a command line for the first time: which version, and what can it do?"""

import re
import subprocess
import sys

import pytest

import ldp_aggregator
import ldp_client
import protocols
import simulations
from ldp_aggregator.cli.common import ABOUT
from ldp_aggregator.cli.program import MODULES, make_parser
from protocols.shell import DONE
from simulations.__main__ import COMMANDS as EXPERIMENTS

NEVER_FOR_HELP = ("pandas", "scipy", "sklearn", "aiohttp")


@pytest.mark.parametrize("program", ["ldp_aggregator", "ldp_client", "simulations"])
def test_every_program_says_its_version(program):
    answered = subprocess.run([sys.executable, "-m", program, "--version"], check=True, capture_output=True, text=True)
    assert f" {ldp_client.__version__} (Python " in answered.stdout


def test_every_package_has_the_version_of_its_distribution():
    packages = (protocols, ldp_client, ldp_aggregator, simulations)
    assert {package.__version__ for package in packages} == {ldp_client.__version__}


@pytest.mark.parametrize(
    ("main", "commands"),
    [("ldp_aggregator.cli.program import run", ABOUT), ("simulations.__main__ import main as run", EXPERIMENTS)],
)
def test_help_lists_every_command_and_imports_no_library_that_trains_or_serves(main, commands):
    program = (
        f"import sys\nfrom {main}\n"
        "try: run(['--help'])\nexcept SystemExit as ended: code = ended.code\n"
        f"sys.exit(code or sum(name in sys.modules for name in {NEVER_FOR_HELP!r}))"
    )
    answered = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert answered.returncode == DONE
    assert [name for name in commands if not re.search(rf"^ +{name}\s", answered.stdout, re.MULTILINE)] == []


def test_help_says_of_a_command_what_its_own_help_says():
    assert list(ABOUT) == [name for names in MODULES.values() for name in names]
    assert make_parser().format_help() == make_parser(listed=True).format_help()
