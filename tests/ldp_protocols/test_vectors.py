"""The test vectors of ``protocols/vectors``: this code passes them, and writes them."""

import json
import math
from pathlib import Path

import pytest
from value_vectors import feature_of, of_json

from ldp_client import Classifier, perturb
from ldp_client.draw import draw_questions, draw_window
from ldp_client.ledger import Installation
from ldp_client.network.aggregator import read_campaign
from ldp_client.refusals import Caps, refusal
from ldp_protocols import Campaign, DocumentError, LdpError, ScriptedCoins, decode_upload, encode_upload
from ldp_protocols.blanket import delta_bound, lot_of
from ldp_protocols.document.directory import read_directory
from ldp_protocols.document.model import Model
from ldp_protocols.document.schema import Label
from ldp_protocols.values import number_of, text_of

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "protocols" / "vectors"
FILES = ("documents.json", "reports.json", "uploads.json", "training.json", "values.json", "directories.json")
DOCUMENTS, REPORTS, UPLOADS, TRAINING, VALUES, DIRECTORIES = (
    json.loads((FOLDER / name).read_text(encoding="utf-8")) for name in FILES
)
CROWD = json.loads((FOLDER / "crowd.json").read_text(encoding="utf-8"))
CAMPAIGNS = {case["name"]: Campaign.parse(case["document"].encode(), case["id"]) for case in DOCUMENTS["accepted"]}
REFUSED = (
    (DOCUMENTS["refused"], lambda case: read_campaign(case["document"].encode(), case["id"])),
    (UPLOADS["malformed"], lambda case: decode_upload(bytes.fromhex(case["upload"]), CAMPAIGNS[UPLOADS["document"]])),
    (TRAINING["refused"], lambda case: Model.from_json(case["model"])),
    (DIRECTORIES["refused"], lambda case: read_directory(case["document"].encode(), DIRECTORIES["key"])),
)


def named(cases):
    return [pytest.param(case, id=case["name"]) for case in cases]


def approximately(one, other, relative=1e-9):
    """Equal up to the last digits of doubles."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(approximately(one[key], other[key], relative) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(approximately(a, b, relative) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) or isinstance(other, float):
        return one == pytest.approx(other, rel=relative, abs=1e-12)
    return one == other


@pytest.mark.parametrize("case", named(DOCUMENTS["accepted"]))
def test_a_document_has_this_id_and_this_loss(case):
    campaign = CAMPAIGNS[case["name"]]
    assert (campaign.id, len(campaign.document)) == (case["id"], case["bytes"])
    assert campaign.realised_epsilon == case["realised_epsilon"] <= campaign.privacy.epsilon


@pytest.mark.parametrize("case", named(DOCUMENTS["alike"]))
def test_a_document_that_says_the_same_in_other_words_asks_the_same(case):
    asked = Campaign.parse(case["document"].encode())
    assert asked.questions == CAMPAIGNS[case["like"]].questions
    assert asked.asked == CAMPAIGNS[case["like"]].asked


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_secret_is_asked_these_questions(name):
    cases = [case for case in REPORTS["draws"] if case["document"] == name]
    assert len(cases) > 20
    for case in cases:
        drawn = draw_questions(CAMPAIGNS[name], bytes.fromhex(case["secret"]))
        assert [question.index for question in drawn] == case["questions"]
        assert draw_window(CAMPAIGNS[name], bytes.fromhex(case["secret"])) == case.get("window", 0)


@pytest.mark.parametrize("case", REPORTS["accepted"], ids=lambda case: case["document"])
def test_scripted_words_give_these_reports_and_take_no_word_more(case):
    coins = ScriptedCoins([int(word, 16) for word in case["words"]])
    campaign = CAMPAIGNS[case["document"]]
    sent = perturb(campaign, case["record"], case["label"], secret=bytes.fromhex(case["secret"]), coins=coins)
    assert coins.taken == len(case["words"])
    assert [(r.question, r.id.hex(), r.payload.hex()) for r in sent] == [
        (r["question"], r["id"], r["payload"]) for r in case["reports"]
    ]
    assert encode_upload(sent, campaign).hex() == case["upload"]
    assert sum(block.count for block in decode_upload(bytes.fromhex(case["upload"]), campaign)) == len(sent)


def test_every_question_of_every_campaign_is_answered_by_a_vector():
    answered = {
        (case["document"], report["question"] % len(CAMPAIGNS[case["document"]].questions))
        for case in REPORTS["accepted"]
        for report in case["reports"]
    }
    assert answered == {
        (name, question.index) for name, campaign in CAMPAIGNS.items() for question in campaign.questions
    }


@pytest.mark.parametrize(
    "case", REPORTS["refused"], ids=lambda case: f"{case['code']}-{case['record']!r}-{case['label']!r}"[:40]
)
def test_a_record_that_must_be_refused_is_refused_before_a_word_is_taken(case, code_of):
    campaign = CAMPAIGNS[case["document"]]
    assert code_of(LdpError, perturb, campaign, case["record"], case["label"], coins=ScriptedCoins([])) == case["code"]


@pytest.mark.parametrize("case", UPLOADS["impossible"], ids=lambda case: f"{case['document']}-{case['code']}")
def test_a_report_that_no_device_sends_is_refused_with_its_code(case, code_of):
    campaign = CAMPAIGNS[case["document"]]
    (block,) = decode_upload(bytes.fromhex(case["upload"]), campaign)
    assert code_of(DocumentError, campaign.counted[block.question].mechanism.check, block.payloads) == case["code"]


@pytest.mark.parametrize("case", TRAINING["accepted"], ids=lambda case: case["document"])
def test_an_upload_gives_this_tally_these_estimates_and_this_model(case):
    pytest.importorskip("pandas", reason="the aggregator's packages are not installed")
    from ldp_aggregator import Tally, estimate, train

    campaign = CAMPAIGNS[case["document"]]
    tally = Tally.of_uploads(campaign, [bytes.fromhex(case["upload"])])
    assert tally.n.tolist() == case["n"]
    assert [counts.tolist() for counts in tally.counts] == case["counts"]
    for found, wanted in zip(estimate(campaign, tally).questions, case["estimates"], strict=True):
        processed = None if found.processed is None else found.processed.tolist()
        told = {name: getattr(found.cells, name).tolist() for name in ("value", "low", "high")}
        assert approximately({**told, "processed": processed}, wanted)
    assert approximately(json.loads(train(campaign, tally).to_json()), json.loads(case["model"]))


@pytest.mark.parametrize("case", TRAINING["accepted"], ids=lambda case: case["document"])
def test_a_model_predicts_what_the_vector_says(case):
    classifier = Classifier(Model.from_json(case["model"]))
    for prediction in case["predictions"]:
        assert approximately(classifier.joint_log_likelihood(prediction["record"]), prediction["scores"])
        assert classifier.predict(prediction["record"]) == prediction["class"]


def test_a_record_that_is_impossible_in_every_class_is_of_the_class_that_the_prior_prefers():
    classifier = Classifier(Model.from_json(TRAINING["impossible"]["model"]))
    told = [classifier.predict(case["record"]) for case in TRAINING["impossible"]["predictions"]]
    assert told == [case["class"] for case in TRAINING["impossible"]["predictions"]] == ["no", "no", "yes", "no", "no"]
    for case in TRAINING["impossible"]["predictions"]:
        scores = [None if math.isinf(score) else score for score in classifier.scores(case["record"])]
        assert approximately(scores, case["scores"])


def test_the_files_are_what_the_documented_command_makes(tmp_path):
    pytest.importorskip("pandas", reason="the aggregator's packages are not installed")
    import write

    write.main(str(tmp_path))
    for name in (*FILES, "answers.json", "words.json", "crowd.json"):
        made, kept = ((folder / name).read_text(encoding="utf-8") for folder in (tmp_path, FOLDER))
        if name == "training.json":
            fresh, old = json.loads(made), json.loads(kept)
            for one, other in zip(fresh["accepted"], old["accepted"], strict=True):
                assert approximately(json.loads(one.pop("model")), json.loads(other.pop("model")))
            assert approximately(fresh["accepted"], old["accepted"])
        else:
            assert made == kept, f"{name} is stale: python deploy/vectors/write.py protocols/vectors"


@pytest.mark.parametrize("case", VALUES["cases"], ids=lambda case: repr(case["value"])[:40])
def test_a_value_has_this_text_and_this_number(case):
    number = number_of(of_json(case["value"]))
    assert text_of(of_json(case["value"])) == case["text"]
    assert number == (case["number"] if case["number"] is None else float(case["number"]))


def test_a_value_has_this_index_in_a_feature_and_in_a_label():
    values = [of_json(case["value"]) for case in VALUES["cases"]]
    for case in VALUES["features"]:
        feature = feature_of(case)
        assert [feature.index_of(value) for value in values] == case["indices"], case["name"]
        assert {*range(feature.size)} <= set(case["indices"]), "every value has its case"
    label = Label("answer", tuple(VALUES["label"]["classes"]))
    assert [label.index_of(value) for value in values] == VALUES["label"]["indices"]


@pytest.mark.parametrize("case", named(DIRECTORIES["accepted"]))
def test_a_directory_says_what_the_vector_says(case):
    directory = read_directory(case["document"].encode(), DIRECTORIES["key"])
    assert (directory.version, f"{directory.expires:%Y-%m-%dT%H:%M:%SZ}") == (case["version"], case["expires"])
    assert directory.campaigns == case["campaigns"]


@pytest.mark.parametrize(
    ("case", "read"),
    [pytest.param(case, read, id=case.get("name", case["code"])) for cases, read in REFUSED for case in cases],
)
def test_what_must_be_refused_is_refused_with_its_code(case, read, code_of):
    assert code_of(LdpError, read, case) == case["code"]


@pytest.mark.parametrize("case", named(CROWD["accepted"]))
def test_a_crowd_has_this_bound(case):
    campaign = Campaign.parse(case["document"].encode(), case["id"])
    crowd = campaign.privacy.crowd
    assert (campaign.realised_epsilon, crowd.reports) == (case["loss"], case["reports"])
    blanket = lot_of((question.mechanism, question.weight) for question in campaign.questions)
    for epsilon, delta in case["deltas"]:
        tail = min(1e-14, 1e-5 * crowd.delta)
        assert delta_bound(blanket, crowd.reports, epsilon, tail) == pytest.approx(delta, rel=1e-9, abs=0)


@pytest.mark.parametrize("case", named(CROWD["refused"]))
def test_a_crowd_that_promises_too_much_is_refused_with_its_code(case, code_of):
    assert code_of(DocumentError, Campaign.parse, case["document"].encode()) == case["code"]


@pytest.mark.parametrize("case", CROWD["caps"])
def test_a_campaign_with_a_crowd_needs_two_caps_of_its_own(case):
    (document,) = (one["document"] for one in CROWD["accepted"] if one["name"] == case["document"])
    caps = Caps(*(case[name] for name in Caps._fields))
    found = refusal(Installation(), Campaign.parse(document.encode()), caps, 1_800_000_000.0)
    assert (found and found.code) == case["code"]
