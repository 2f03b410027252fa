"""What faces the network needs no tables and no estimators, and loads none: it serves without them, and is small."""

import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from asyncio import run
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from cells import cell_campaign, count, publish, reports_of
from daemon import Daemon
from drafts import draft, text
from packaging.requirements import Requirement
from uploader import post

from ldp_aggregator.service.publishing import derive_model
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.store import open_store
from ldp_aggregator.store.contract import Shares, utc_now
from ldp_client.answering import perturb
from ldp_client.network.sealed import Sealed
from ldp_protocols import Campaign, LdpError, encode_upload
from ldp_protocols.oblivious import BESIDE_BODY, REQUEST_TYPE, BinaryRequest, decode_response, encode_request
from ldp_protocols.wire import MEDIA_TYPE

ROOT = Path(__file__).resolve().parents[2]
TYPED = (("content-type", MEDIA_TYPE),)
LEFT_OUT = ("pandas", "sklearn", "scipy")


@pytest.fixture
def thin(tmp_path):
    """An environment in which the libraries that train cannot be imported."""
    folder = tmp_path / "missing"
    folder.mkdir()
    for name in LEFT_OUT:
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError('not here', name={name!r})\n")
    return {"PYTHONPATH": str(folder)}


def command(thin, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "ldp_aggregator", *map(str, arguments)],
        env=os.environ | thin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def ask(url, token, method="GET"):
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def with_tokens(data, *scopes):
    """A campaign of 8 cells in a new store, and a token of each scope."""

    async def made():
        store = await open_store(data)
        campaign, texts = await publish(store, 8), []
        for scope in scopes:
            text, stored = make_token(f"a {scope}", scope, utc_now())
            await store.add_token(stored)
            texts.append(text)
        await count(store, campaign, [1])
        await store.close()
        return campaign, *texts

    return run(made())


def test_a_server_without_them_counts_estimates_and_says_that_it_does_not_train(thin, tmp_path):
    data = tmp_path / "data"
    campaign, admin, collector, relay = with_tokens(data, "admin", "collector", "relay")
    with Daemon(data, new=True, **thin) as daemon:
        body = encode_upload((reports_of(campaign, ((number, number % 8) for number in range(2, 51)))), campaign)
        assert post(daemon.public, campaign, body, token=relay) == (200, {"rejected": []})
        status, estimates = ask(f"{daemon.public}/v1/campaigns/{campaign.id}/estimates", collector)
        assert (status, estimates["questions"][0]["n"]) == (200, 50)
        status, problem = ask(f"{daemon.admin}/admin/v1/campaigns/{campaign.id}/train", admin, "POST")
        assert (status, problem["code"]) == (501, "not-installed")
        assert "ldp-bayes[aggregator]" in problem["detail"]
        with urllib.request.urlopen(daemon.operations + "/readyz", timeout=10) as answer:
            assert answer.status == 200
    assert command(thin, "fsck", "--data", data).returncode == 0


def test_the_model_of_a_federated_campaign_is_not_derived_without_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "ldp_aggregator.trainers.federation", None)
    with pytest.raises(LdpError, match=r"ldp-bayes\[aggregator\]"):
        derive_model(cell_campaign(8), Shares(b"", ()))


def test_a_command_that_needs_them_says_so_in_a_line(thin, tmp_path):
    campaign, *_ = with_tokens(tmp_path)
    for arguments in (["fit", "--help"], ["audit", "--help"], ["train", campaign.id, "--data", tmp_path]):
        failed = command(thin, *arguments)
        assert failed.returncode in (1, 2)
        assert failed.stderr.count("\n") == 1
        assert re.search(r"ldp-aggregator: \S+ is not installed.*ldp-bayes\[aggregator\]", failed.stderr)
    helped = command(thin, "--help")
    assert (helped.returncode, "learn a private model from a table" in helped.stdout) == (0, True)


def locked(name):
    """Name and version of every entry of one of the images' lock files, with its hashes."""
    entries = re.split(r"\n(?=\S)", (ROOT / "deploy" / "image" / name).read_text().strip())
    found = {}
    for entry in entries:
        name, version = re.match(r"([a-z0-9-]+)==(\S+)", entry).groups()
        found[name] = (version, re.findall(r"--hash=sha256:([0-9a-f]{64})", entry))
    return found


IMAGES = {"aggregator": ("serve", "postgres", "archive"), "issuer": ("serve", "issuer"), "relay": ()}
"""The images, and the extras that each has."""


@pytest.mark.parametrize("image", IMAGES)
def test_every_dependency_of_an_image_is_locked_with_hashes_and_none_that_trains_is_there(image):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = [line for name in IMAGES[image] for line in extras[name] if "ldp-bayes" not in line]
    found = locked(f"{image}.txt")
    for line in [*wanted, "msgpack>=1.1,<2", *(["uvloop"] if image == "aggregator" else [])]:
        requirement = Requirement(line)
        assert found[requirement.name][0] in requirement.specifier, line
    assert all(hashes for _, hashes in found.values())
    assert not {"pandas", "scikit-learn", "scipy", "pip"} & set(found)


def test_with_what_the_images_have_it_is_a_gateway_an_issuer_and_a_relay(tmp_path):
    """Whatever else is here cannot be imported."""
    has = {*(one for image in IMAGES for one in locked(f"{image}.txt")), "ldp-bayes", "ldp-bayes-client"}
    folder = tmp_path / "missing"
    folder.mkdir()
    for name, distributions in packages_distributions().items():
        if not name.startswith("_") and not has & {one.lower().replace("_", "-") for one in distributions}:
            (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError('not here', name={name!r})\n")
    assert {"pandas.py", "pyhpke.py"} <= {path.name for path in folder.iterdir()}
    image = {"PYTHONPATH": str(folder)}
    key, data = tmp_path / "gateway.key", tmp_path / "data"
    data.mkdir()
    line = command(image, "key", "create", key, "--gateway").stdout
    with Daemon(data, new=True, **image, LDP_AGGREGATOR_GATEWAY_KEY=str(key)) as daemon:
        drafted = draft(text("ill", "yes", "no"), gateway=tomllib.loads(line)["gateway"])
        path = tmp_path / "draft.json"
        path.write_text(json.dumps(drafted))
        campaign = command(image, "campaign", "create", path, "--data", data, "--elsewhere").stdout.strip()
        with urllib.request.urlopen(f"{daemon.public}/v1/campaigns/{campaign}", timeout=30) as answer:
            sealing = Campaign.parse(answer.read())
        upload = encode_upload(perturb(sealing, {"ill": "no"}, "a"), sealing)
        inside = BinaryRequest("POST", "https", "x", f"/v1/campaigns/{campaign}/reports", TYPED, upload)
        sealed = Sealed(sealing.gateway, encode_request(inside, beside=BESIDE_BODY))
        request = urllib.request.Request(f"{daemon.public}/v1/ohttp", sealed.body, {"Content-Type": REQUEST_TYPE})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert decode_response(sealed.open(answer.read()))[0] == 200
    for line in (["issuer", str(tmp_path / "issuer.pem")], ["relay", "--help"]):
        program = [sys.executable, "-m", f"ldp_aggregator.{line[0]}", *line[1:]]
        subprocess.run(program, env=os.environ | image, capture_output=True, timeout=120, check=True)


def test_what_builds_the_image_is_locked_with_hashes():
    """The build system of both distributions, which pip does not fetch by itself there."""
    found = locked("build.txt")
    for project in (ROOT / "pyproject.toml", ROOT / "deploy" / "client-wheel" / "pyproject.toml"):
        for line in tomllib.loads(project.read_text())["build-system"]["requires"]:
            requirement = Requirement(line)
            assert found[requirement.name][0] in requirement.specifier, line
    assert all(hashes for _, hashes in found.values())


def test_the_lock_files_name_no_index_and_no_folder():
    for path in (ROOT / "deploy" / "image").glob("*.txt"):
        assert not re.search(r"://|--index|--find-links|file:|/home/|/opt/", path.read_text()), path


MOST_MIB = 60
"""Of memory of its own, about 46 on CPython 3.11 and 52 on 3.14.

How much of libraries' files is mapped is the page cache's affair.
"""

_LOADED = """
import sys
from ldp_aggregator.cli.program import run
for line in ("token create --scope admin --name a", "backup copy", "fsck", "serve --help"):
    try:
        assert run([*line.split(), *([] if "help" in line else ["--data", "."])]) == 0, line
    except SystemExit as stop:
        assert not stop.code, line
    assert not {"pandas", "sklearn", "scipy", "matplotlib"} & set(sys.modules), line
"""


def test_a_command_that_keeps_a_store_loads_no_tables_and_no_estimators(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", _LOADED], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr


def own_mib(process):
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    (kib,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
    return kib / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
def test_an_idle_server_is_small(tmp_path):
    with Daemon(tmp_path, new=True) as server:
        assert own_mib(server.process.pid) <= MOST_MIB
