"""What a page's reader has before its first block: files, names, a server. A stage that goes on after a ``yield`` looks
at what came out. A page without a stage needs nothing but an empty folder.
"""

import contextlib
import json
import re
import shutil
from functools import partial

import numpy as np
import pandas as pd
from answering import answer
from blocks import PAGES, ROOT, blocks_of
from drafts import draft, number
from issuing import issuer
from page_draft import TABLE_DRAFT
from postgres import database

from ldp_aggregator import train
from ldp_aggregator.issuer.issuing import make_issuer_key, public_key
from ldp_aggregator.store.sql.tables import EARLIER
from ldp_client import Classifier, Device, perturb
from ldp_client.testing import FakeServer
from ldp_protocols import Campaign, LdpError, encode_upload
from ldp_simulations import simulate
from ldp_simulations.tables import read_draft

EXAMPLE = read_draft(ROOT / "examples" / "campaign.toml")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COLLECT = "https://collect.example.org"
DEPLOYMENT = sorted(page for page in PAGES if page.startswith("docs/deployment/"))


def tables(session, count, *names, draft):
    """Tables of so many people, and their draft."""
    for name in names:
        rng = np.random.default_rng(len(name))
        frame = pd.DataFrame({"age": rng.integers(18, 90, count), "job": rng.choice(["none", "part", "full"], count)})
        paid = np.where(rng.random(count) < 0.2 + 0.6 * (frame["age"] > 50), "yes", "no")
        frame.assign(paid=paid).to_csv(session.folder / name, index=False)
    (session.folder / draft).write_text(json.dumps(TABLE_DRAFT))


def publish(session, drafted, *, data="data"):
    """A campaign in the store; nothing of what a page prints."""
    (session.folder / "draft.json").write_text(json.dumps(drafted), encoding="utf-8")
    session.shell(f"ldp-aggregator campaign create draft.json --data {data}", "a campaign")
    return Campaign.compile(drafted)


def link(session, path):
    """A folder of the repository."""
    place = ROOT / path
    (session.folder / place.name).symlink_to(place)


def copy(session, path, name="campaign.toml"):
    """A file of the repository."""
    (session.folder / name).write_bytes((ROOT / path).read_bytes())


def serve(session, options="--data data"):
    session.shell(f"ldp-aggregator serve {options} &", "a server")
    return f"http://127.0.0.1:{session.public}"


def answer_once(session, campaign):
    session.shell(
        f"""
        echo '{{"record": {{"age": "young", "words": 41000}}, "label": "no"}}' > record.json
        ldp-client contribute http://127.0.0.1:{session.public} {campaign.id} --storage other.db \\
          --record-file record.json
        """,
        "a device",
    )


def readme(session):
    """The app has a server of its own; in the reader's store people have answered already."""
    link(session, "examples")
    campaign = publish(session, EXAMPLE, data="served")
    publish(session, EXAMPLE)
    answer(session.folder / "data", campaign.id, [({"age": "young"}, "yes"), ({"age": "old"}, "no")] * 1000)
    session.names |= {"url": serve(session, "--data served"), "campaign_id": campaign.id, "agrees": lambda *_: True}
    yield
    assert session.names["device"].run_once(timeout=10)
    assert session.names["campaign"].status().fate == "arrived"
    (call,) = re.findall(r"^`(campaign\.classifier\(.*?\)\.predict\(.*?\))`", README, re.MULTILINE)
    assert eval(call, session.names) in ("yes", "no")
    session.names["device"].close()
    assert "Model version 1 is published from 2,000 reports." in session.of("sh", -1)


def projections(session):
    features = [number(name, 0, 9, missing=True) for name in "xyz"]
    projected = draft(*features, label={"name": "class", "classes": ["a", "b"]})
    (session.folder / "draft.json").write_text(json.dumps(projected))
    rows = [f"{i % 7},{(i * 5) % 9},{i % 4},{'ab'[i % 7 > 3]}" for i in range(60)]
    (session.folder / "public.csv").write_text("\n".join(["x,y,z,class", *rows]))
    yield
    assert '"fitted_on": "public"' in (session.folder / "draft.json").read_text()


def how_it_works(session):
    campaign = Campaign.compile(EXAMPLE)
    records = [({"age": "young", "words": 30_000}, "yes"), ({"age": "old", "words": 90_000}, "no")] * 50
    uploads = [encode_upload(perturb(campaign, record, label), campaign) for record, label in records]
    session.names |= {"draft": EXAMPLE, "uploads": uploads}
    yield
    told = session.of("python", 0)
    assert "epsilon = 2" in told
    assert session.names["tally"].n.sum() == 100
    assert '"kind":"naive-bayes"' in session.names["device_model"]


def client(session):
    campaign = publish(session, EXAMPLE)
    url = serve(session)
    session.texts[COLLECT] = url
    answer_once(session, campaign)
    session.shell(
        f"""
        ldp-aggregator train {campaign.id} --anyway --data data --output model.json
        key=$(ldp-aggregator key create k)
        ldp-aggregator key sign k --version 1 --expires-in 9 --campaign {campaign.id}=model.json --output directory.json
        ldp-aggregator key publish $key directory.json --data data
        echo $key > key.pub
        """,
        "a publisher",
    )
    key = (session.folder / "key.pub").read_text().strip()
    names = {"url": url, "campaign_id": campaign.id, "KEY": key, "Classifier": Classifier}
    session.names |= {**names, "agrees": lambda *_: True}
    package(session)
    (session.folder / "app.js").write_text(PLAIN_APP.format(id=campaign.id, url=url))
    session.texts |= in_node(campaign.id, url, key)
    yield
    assert session.names["campaign"].fetch().title == campaign.title
    assert session.names["classifier"].predict({"age": "old"}) in campaign.label.classes


def package(session):
    """The npm package as ``make javascript`` built it, which a page's modules import by its name."""
    modules = session.folder / "node_modules"
    modules.mkdir(exist_ok=True)
    (modules / "ldp-bayes-client").symlink_to(ROOT / "javascript")


def in_node(campaign, url, key):
    """What stands for a browser's parts of a page's module: a storage in memory, names, a delivery that is awaited."""
    return {
        'import { browserStorage, Device } from "ldp-bayes-client/browser";': IN_NODE.format(id=campaign),
        'import { signedBy } from "ldp-bayes-client/publisher";': PINNED.format(id=campaign, url=url, key=key),
        "device.start();": "await device.runOnce(20_000);",
    }


def backend(session):
    campaign = publish(session, EXAMPLE)
    session.names |= {"url": serve(session), "campaign_id": campaign.id, "agrees": lambda *_: True}
    yield
    assert "epsilon 2 of at most 4" in str(session.names.get("user", session.names["device"]).ledger())
    session.names["device"].close()


def deployment(session):
    campaign = Campaign.compile(EXAMPLE)
    folder = session.folder
    link(session, "deploy")
    copy(session, "examples/campaign.toml", "draft.toml")
    (hospitals,) = (one.text for one in blocks_of("docs/how-to/hospitals.md") if one.title)
    (folder / "hospitals.toml").write_text(hospitals)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.choice(["young", "old"], 2000), "words": rng.uniform(0, 200_000, 2000)})
    labels = pd.Series(np.where(frame["age"] == "young", "yes", "no"))
    (folder / "model.json").write_text(train(campaign, simulate(campaign, frame, labels, rng)).to_json())
    session.texts |= {
        "/var/lib/ldp-aggregator": "store",
        "/backup/today": "backup",
        "/srv/reports": "reports",
        "ID": campaign.id,
        "KEY": lambda: re.search(r"^[\w-]{43}$", session.printed[-1][1], re.MULTILINE)[0],
        COLLECT: lambda: serve(session, "--data store"),
    }
    session.environment |= {"LDP_AGGREGATOR_DATA": "store", "LDP_AGGREGATOR_ARCHIVE": str(folder / "reports")}
    publish(session, EXAMPLE, data="store")
    serve(session, "--data store")
    answer_once(session, campaign)
    session.shell("stop; ldp-aggregator token create --scope relay > relay.token", "the archive has a report")
    for one in ("first", "second"):
        session.texts[f"/data/{one}"] = one
        session.shell(f"ldp-aggregator campaign create draft.toml --data {one}", one)
    session.texts["/data/both"] = "both"
    session.texts["postgresql://ldp@database/ldp"] = session.enter(database()).address


def upgrade(session):
    """The second store is one of the version before; at the end its server is stopped."""
    publish(session, EXAMPLE, data="store")
    shutil.copytree(ROOT / "tests" / "stores" / str(EARLIER[-1]), session.folder / "old")
    places = iter(["store", "old", "old"])

    def place():
        found = next(places, None)
        if found is None:
            session.shell("stop", "the server is stopped")
        return found or "old"

    session.texts |= {"/var/lib/ldp-aggregator": place, "/backup/before": "before"}
    yield
    assert "what it was before the upgrade" in session.of("sh", -1)


def crowd(session):
    """The app's own names. Nothing is asked of the relay before a device takes part."""
    session.names |= {"Device": Device, "path": session.folder / "device.db", "url": COLLECT, "campaign_id": "A" * 43}


def ohttp(session):
    crowd(session)
    package(session)
    session.texts["const device ="] = IN_NODE.format(id="A" * 43) + "const device ="


def tokens(session):
    """Keys that are there already, a person's request, and an app whose person has agreed."""
    keys = [make_issuer_key(session.folder / "issuer.pem")]
    make_issuer_key(session.folder / "relays.pem", *keys)
    server = session.enter(FakeServer())
    published = server.publish({**EXAMPLE, "issuer": {"name": "login.example.org", "key": public_key(keys[0])}})

    def agreed():
        device = session.enter(contextlib.closing(Device(":memory:", max_total_epsilon=4)))
        part = device.campaign(server.url, published.id, max_epsilon=2)
        part.grant()
        return part

    asked = []
    with contextlib.suppress(LdpError):
        agreed().obtain_token(lambda request: asked.append(request) or b"")

    def post(request):
        return session.names["issuer"].sign("berta", request)

    session.names |= {"campaign": agreed(), "person": "anna", "request": asked[0], "post": post}
    yield
    assert len(session.names["response"]) == 256
    assert session.names["campaign"].next_step().step == "contribute"


def trainers(session):
    from sklearn.model_selection import cross_val_score

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 100), "job": rng.choice(["none", "part", "full"], 100)})
    session.names |= {"frame": frame, "labels": rng.choice(["yes", "no"], 100), "cross_val_score": cross_val_score}
    tables(session, 400, "TABLE.csv", "TEST.csv", draft="DRAFT.json")
    campaign = Campaign.compile(TABLE_DRAFT)
    (session.folder / "DOC").write_bytes(campaign.document)
    session.environment["LDP_AGGREGATOR_DATA"] = "data"
    session.texts |= {COLLECT: serve(session), "ID": campaign.id}
    yield
    for block, printed in session.printed:
        if block.language == "python":
            assert printed.strip() == re.search(r"print\(.*\) +# (.*)", block.text)[1]


def values(session):
    session.names["campaign"] = Campaign.compile(TABLE_DRAFT)
    yield
    ((block, printed),) = session.printed
    assert printed.strip().split("\n") == [line.strip() for line in re.findall(r"#(.*)$", block.text, re.MULTILINE)]


def evaluation(session):
    campaign = publish(session, {**EXAMPLE, "study": "credit"})
    ages = enumerate(["young", "medium", "old"] * 500)
    people = [({"age": age, "words": 132 * place}, "yes" if age == "young" else "no") for place, age in ages]
    answer(session.folder / "data", campaign.id, people)
    session.shell("export LDP_AGGREGATOR_DATA=data", "the first round is over")
    session.texts["ID"] = campaign.id


def scale(session):
    session.texts["postgresql://localhost/empty"] = session.enter(database()).address


def one_machine(session):
    copy(session, "examples/campaign.toml")
    session.texts |= {"/var/lib/ldp-aggregator": "store", "/backup/today": "backup"}


def many_machines(session):
    copy(session, "examples/campaign.toml")
    session.texts["postgresql://ldp@database/ldp"] = session.enter(database()).address


def choose(session):
    copy(session, "examples/campaign.toml")
    rng = np.random.default_rng(1)
    words = rng.gamma(4.0, 15_000.0, 1500).round()
    missed = np.where(rng.random(1500) < 0.2 + 0.6 * (words < 40_000), "yes", "no")
    ages = rng.choice(["young", "medium", "old"], 1500)
    table = pd.DataFrame({"age": ages, "words": words, "split_suits": missed})
    table.to_csv(session.folder / "public.csv", index=False)


def hospitals(session):
    rng = np.random.default_rng(1)
    for name in ("north", "south"):
        age, ward = rng.integers(20, 100, 800), rng.choice(["surgery", "medicine", "other"], 800)
        again = np.where(rng.random(800) < age / 130, "yes", "no")
        frame = pd.DataFrame({"age": age, "ward": ward, "readmitted": again})
        frame.to_csv(session.folder / f"{name}.csv", index=False)


def central(session):
    tables(session, 500, "table.csv", "test.csv", draft="draft.json")
    session.names["schema"] = TABLE_DRAFT
    yield
    assert "epsilon = 1" in session.of("python", 0)


def port(session):
    """A sound client fails one audit in 1,000 at the most, two of two one time in a million."""
    session.shell('one_of_two() { "$@" || "$@"; }', "a second audit")
    session.texts["ldp-aggregator audit"] = "one_of_two ldp-aggregator audit"
    link(session, "protocols/vectors")


def javascript(session):
    """The package that ``make javascript`` built, in Node; its storage is in memory where the page has a browser's."""
    link(session, "examples")
    modules = session.folder / "node_modules"
    for name, text in NATIVE.items():
        (modules / name).mkdir(parents=True)
        (modules / name / "package.json").write_text('{"type": "module", "main": "index.js"}')
        (modules / name / "index.js").write_text(text)
    package(session)
    campaign = publish(session, EXAMPLE)
    url = serve(session)
    answer_once(session, campaign)
    session.shell(f"ldp-aggregator train {campaign.id} --anyway --data data", "a model")
    key = session.shell("ldp-aggregator key create key", "a publisher").strip()
    asked = publish(session, {**EXAMPLE, "title": "One person, one answer", "issuer": issuer()})
    app = APP.format(id=asked.id, url=url, campaigns=ROOT / "javascript/test/support/campaigns.mjs")
    (session.folder / "app.js").write_text(app)
    session.texts |= {
        COLLECT: url,
        "ID": campaign.id,
        "/var/lib/my-app/ldp": str(session.folder / "node-storage"),
    } | in_node(campaign.id, url, key)
    yield
    listed = json.loads(session.shell("ldp-aggregator campaign list --data data --json", "what arrived"))
    arrived = {one["id"]: one["reports"] for one in listed}
    shown = any("obtainToken(post);" in block.text for block, _ in session.printed)
    assert arrived == {campaign.id: 2, asked.id: int(shown)}, "the page's device and the one before it; who had a token"


NATIVE = {
    "@react-native-async-storage/async-storage": (
        "const kept = new Map(); export default { getItem: async (k) => kept.get(k) ?? null,"
        " setItem: async (k, v) => { kept.set(k, v); }, removeItem: async (k) => { kept.delete(k); },"
        " getAllKeys: async () => [...kept.keys()] };"
    ),
    "react-native-get-random-values": "",
}
"""What React Native has and Node has not."""

IN_NODE = """
import {{ Device }} from "ldp-bayes-client/node";
import {{ memoryStorage }} from "ldp-bayes-client/testing";
const browserStorage = () => memoryStorage();
const id = "{id}", agrees = async () => true;
"""

APP = """
import {{ Device }} from "ldp-bayes-client/node";
import {{ memoryStorage }} from "ldp-bayes-client/testing";
import {{ sign }} from "{campaigns}";
export const device = new Device(memoryStorage(), {{ maxTotalEpsilon: 4, identity: "per installation" }});
export const campaign = device.campaign("{url}", "{id}", {{ maxEpsilon: 2 }});
export const post = async (request) => sign(request);
await campaign.grant();
"""

PLAIN_APP = """
import {{ Device }} from "ldp-bayes-client/node";
import {{ memoryStorage }} from "ldp-bayes-client/testing";
export const device = new Device(memoryStorage(), {{ maxTotalEpsilon: 4, identity: "per installation" }});
export const campaign = device.campaign("{url}", "{id}", {{ maxEpsilon: 2 }});
"""
"""The module that a page's first block makes of an app."""

PINNED = """
import {{ signedBy }} from "ldp-bayes-client/publisher";
import {{ Device }} from "ldp-bayes-client/node";
import {{ memoryStorage }} from "ldp-bayes-client/testing";
const device = new Device(memoryStorage(), {{ maxTotalEpsilon: 4, identity: "per installation" }});
const id = "{id}", url = "{url}", KEY = "{key}";
"""

STAGES = {
    "README.md": readme,
    "deploy/client-wheel/README.md": backend,
    "docs/client.md": client,
    **dict.fromkeys(("docs/deployment.md", *DEPLOYMENT), deployment),
    "docs/upgrade.md": upgrade,
    "docs/javascript.md": javascript,
    "docs/evaluation.md": evaluation,
    "docs/scale.md": scale,
    "docs/trainers.md": trainers,
    "docs/values.md": values,
    "docs/how-to/backend.md": backend,
    "docs/how-to/crowd.md": crowd,
    "docs/how-to/ohttp.md": ohttp,
    "docs/how-to/tokens.md": tokens,
    "docs/how-to/central.md": central,
    "docs/how-to/choose.md": choose,
    "docs/how-to/hospitals.md": hospitals,
    "docs/how-to/many-machines.md": many_machines,
    "docs/how-to/one-machine.md": one_machine,
    "docs/how-to/port.md": port,
    "docs/how-to/projections.md": projections,
    "docs/how-it-works.md": how_it_works,
    "examples/flower/README.md": partial(link, path="examples"),
    "examples/javascript/README.md": partial(link, path="examples"),
    "javascript/README.md": javascript,
}
