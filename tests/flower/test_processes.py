"""A SuperLink and two SuperNodes as processes of their own on loopback, and the example app run on them."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

pytest.importorskip("flwr", reason="Flower, for Python 3.11, is not installed; make flower")

from flower_nodes import node
from session import free_ports

from ldp_aggregator.flower.round import answer
from ldp_aggregator.trainers import FederatedState

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "flower"
PROGRAMS = Path(sys.executable).parent
PATIENCE_SECONDS = 180


@pytest.fixture(scope="module")
def campaign():
    names = {}
    exec((EXAMPLE / "hospitals" / "campaign.py").read_text(), {"__name__": "campaign"}, names)
    return names["CAMPAIGN"]


@contextmanager
def started(log, command, environment):
    """A process group, stopped with all that it started."""
    program, streams = [PROGRAMS / command[0], *command[1:]], {"stderr": subprocess.STDOUT, "start_new_session": True}
    with log.open("wb") as output, subprocess.Popen(program, env=environment, stdout=output, **streams) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(check, what):
    end = time.monotonic() + PATIENCE_SECONDS
    while not check():
        if time.monotonic() > end:
            pytest.fail(f"{what} did not happen within {PATIENCE_SECONDS} seconds")
        time.sleep(0.5)


def listens(address):
    try:
        with urlopen(f"http://{address}/health", timeout=5) as answered:
            return answered.status == 200
    except OSError:
        return False


@pytest.mark.timeout(5 * PATIENCE_SECONDS)
def test_the_example_runs_on_a_superlink_and_two_supernodes(tmp_path, campaign):
    port, *others = map(str, free_ports(3))
    home, link = tmp_path / "flwr", f"127.0.0.1:{port}"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{link}"\ninsecure = true\n'
    )
    environment = {
        **os.environ,
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
    }
    output = tmp_path / "model.json"
    nodes = {name: node(tmp_path, number, campaign_id=campaign.id) for number, name in enumerate(("north", "south"))}
    processes = {}
    with ExitStack() as running:
        superlink = ["flower-superlink", "--insecure", "--host", "127.0.0.1", "--port", port]
        superlink.append("--disable-runtime-dependency-installation")
        running.enter_context(started(tmp_path / "superlink.log", superlink, environment))
        wait_for(lambda: listens(link), "the start of the SuperLink")
        for (name, settings), own in zip(nodes.items(), others, strict=True):
            config = f'table="{settings.table}" ledger="{settings.ledger}" campaign-id="{campaign.id}" max-epsilon=1.0'
            supernode = ["flower-supernode", "--insecure", "--superlink", link, "--port", own]
            command = [*supernode, "--node-config", config]
            processes[name] = running.enter_context(started(tmp_path / f"{name}.log", command, environment))
        app = tmp_path / "app"
        shutil.copytree(EXAMPLE, app)
        asked = {"campaign": campaign.document}
        # A second run of the same campaign gets the same shares, and so the same model. In the third a node drops out:
        # it is there to be asked, stands still, and dies.
        for least, seconds in ((2, 300), (2, 300), (1, 25)):
            output.unlink(missing_ok=True)
            if least == 1:
                os.killpg(processes["south"].pid, signal.SIGSTOP)
            configured = f'nodes=2 least-nodes={least} seconds={seconds} output="{output}"'
            command = [PROGRAMS / "flwr", "run", str(app), "here", "--run-config", configured]
            told = {"env": environment, "capture_output": True, "text": True, "timeout": PATIENCE_SECONDS}
            done = subprocess.run(command, check=False, **told)
            assert done.returncode == 0, done.stdout + done.stderr
            if least == 1:
                os.killpg(processes["south"].pid, signal.SIGKILL)
            logs = "".join(log.read_text() for log in tmp_path.glob("*.log"))
            wait_for(lambda: output.is_file() and output.read_text(), "the model" + logs)
            shares = {name: answer(settings, asked)["share"] for name, settings in list(nodes.items())[:least]}
            assert output.read_text() == FederatedState(campaign, shares).model().to_json()
