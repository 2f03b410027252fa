// Every test vector of protocols/vectors, in whatever engine: no module of Node's, so that browsers run it too.
import { count, decodeUpload } from "./server.mjs";

function equal(found, wanted, place = "") {
  const shown = (value) => JSON.stringify(value, (_, one) => (typeof one === "bigint" ? String(one) : one));
  if (Number.isNaN(found) && Number.isNaN(wanted)) return;
  if (shown(found) !== shown(wanted)) throw new Error(`${place} ${shown(found)}, not ${shown(wanted)}`);
}

function near(score, wanted, tolerance = 1e-9) {
  if (score !== wanted && !(Math.abs(score - wanted) <= tolerance * Math.abs(wanted)))
    throw new Error(`score ${score}, not ${wanted}`);
}

function refuses(code, action) {
  try {
    action();
  } catch (error) {
    return equal(error.code ?? String(error), code);
  }
  throw new Error(`not refused, although ${code}`);
}

export const FILES = ["values", "documents", "reports", "uploads", "training", "directories", "words", "crowd"];

/** What is loaded later and vectors are about, by the module of the client. */
export const partsBeside = async (module) => {
  const beside = (part) => module.replace(/core\.js$/, `later/${part}.js`).replace(/\.min\.js$/, `.${part}.min.js`);
  return { words: await import(beside("words")), crowds: await import(beside("crowd")) };
};

/** Checks `client` and its parts, modules, with `files`, the parsed vectors by name. Returns how many cases of each kind passed. */
export async function checkVectors(client, { words, crowds }, files) {
  const {
    Classifier,
    Coins,
    encodeUpload,
    hex,
    numberOf,
    parseCampaign,
    parseModel,
    perturb,
    position,
    textOf,
    unhex,
    uploadLength,
    valueIndex,
  } = client;
  const checked = {};
  const check = (kind, name, test) => {
    try {
      test();
    } catch (error) {
      throw new Error(`${kind} (${name}): ${error.message}`);
    }
    checked[kind] = (checked[kind] ?? 0) + 1;
  };
  const scripted = (words, taken = { count: 0 }) =>
    new Coins(() => {
      if (taken.count >= words.length) throw new Error("more words were asked for than scripted");
      return BigInt(`0x${words[taken.count++]}`);
    });

  const { values, documents, reports, uploads, training, directories } = files;
  const double = (text) => Number(text.replace("inf", "Infinity"));
  const types = { integer: BigInt, double }; // of those that JSON has not
  values.cases.forEach(({ value: written, text, number }, i) => {
    const [type, ...more] = Object.keys(Object(written));
    const named =
      typeof written === "object" && !more.length && ["integer", "double", "decimal", "fraction"].includes(type);
    if (named && !types[type]) return; // JavaScript has no decimals and no fractions
    const value = named ? types[type](written[type]) : written;
    check("values", `${i}: ${JSON.stringify(written)}`, () => {
      equal(textOf(value), text);
      equal(numberOf(value), typeof number === "string" ? double(number) : (number ?? NaN));
      for (const feature of values.features) equal(valueIndex(feature, value), feature.indices[i] ?? NaN, feature.name);
      const found = position(value, values.label.classes);
      equal(found < 0 ? null : found, values.label.indices[i], "label");
    });
  });

  const campaigns = {};
  for (const { name, document, id, realised_epsilon: epsilon } of documents.accepted) {
    check("documents", name, () => {
      const campaign = (campaigns[name] = parseCampaign(document, id));
      equal(campaign.id, id);
      const off = campaign.realisedEpsilon / epsilon - 1;
      if (!(off >= 0 && off < 1e-15)) throw new Error(`loses ${campaign.realisedEpsilon}, not ${epsilon}`);
    });
  }
  for (const { name, document, like } of documents.alike) {
    const asked = ({ questions }) => questions.map((question) => Object.entries(question).sort());
    check("documents alike", name, () => {
      const plain = (campaign) => asked(campaign).map((members) => members.filter(([, value]) => value != null));
      equal(plain(parseCampaign(document)), plain(campaigns[like]));
    });
  }
  for (const { name, document, id, code } of documents.refused) {
    check("documents refused", name, () => refuses(code, () => parseCampaign(document, id ?? undefined)));
  }

  for (const { document, secret, questions, window = 0 } of reports.draws) {
    check("draws", document, () => {
      equal(client.drawWindow(campaigns[document], unhex(secret)), window);
      equal(
        client.drawQuestions(campaigns[document], unhex(secret)).map(({ index }) => index),
        questions,
      );
    });
  }
  for (const { document, secret, record, label, words, reports: wanted, upload } of reports.accepted) {
    check("reports", document, () => {
      const taken = { count: 0 };
      const made = perturb(campaigns[document], record, label, unhex(secret), scripted(words, taken));
      const shown = ({ question, item, id, payload }) => ({
        question,
        item: typeof item === "number" ? item : { cell: item.cell, value: String(item.value) },
        id: hex(id),
        payload: hex(payload),
      });
      equal(
        made.map(shown),
        wanted.map(({ question, item, id, payload }) => ({ question, item, id, payload })),
      );
      equal(hex(encodeUpload(made, uploadLength(campaigns[document]))), upload);
      equal(taken.count, words.length);
    });
  }
  for (const { document, record, label, code } of reports.refused) {
    const asked = () => perturb(campaigns[document], record, label, new Uint8Array(32), scripted([]));
    check("records refused", JSON.stringify([record, label]), () => refuses(code, asked));
  }

  const decode = (upload, document) => decodeUpload(unhex(upload), campaigns[document]);
  for (const { name, upload, code } of uploads.malformed) {
    check("uploads refused", name, () => refuses(code, () => decode(upload, uploads.document)));
  }
  for (const { document, upload, code } of uploads.impossible) {
    check("reports refused", upload, () => {
      const [report] = decode(upload, document);
      refuses(code, () => count(campaigns[document].questions[report.question], report.payload, []));
    });
  }

  const classifies = (name, model, predictions) => {
    const classifier = Classifier.fromJson(model);
    for (const { record, scores: wanted, class: told } of predictions) {
      check("predictions", name, () => {
        classifier.scores(record).forEach((score, c) => near(score, wanted[c]));
        equal(classifier.predict(record), told);
      });
    }
  };
  for (const { document, upload, n, counts, model, predictions } of training.accepted) {
    check("tallies", document, () => {
      const tally = counts.map((cells) => cells.map(() => 0));
      const answered = n.map(() => 0);
      for (const { question, payload } of decode(upload, document)) {
        count(campaigns[document].questions[question], payload, tally[question]);
        answered[question]++;
      }
      equal([answered, tally], [n, counts]);
    });
    classifies(document, model, predictions);
  }
  const strict = Classifier.fromJson(training.impossible.model);
  for (const { record, scores, class: name } of training.impossible.predictions) {
    check("predictions of the impossible", JSON.stringify(record), () => {
      equal(strict.predict(record), name);
      strict.scores(record).forEach((score, c) => near(score, scores[c] ?? -Infinity));
    });
  }
  for (const { name, model, code } of training.refused) {
    check("models refused", name, () => refuses(code, () => parseModel(model)));
  }

  for (const { name, document, code, ...wanted } of [...directories.accepted, ...directories.refused]) {
    let found;
    try {
      const { version, expires, campaigns } = await client.readDirectory(document, directories.key);
      found = {
        version,
        expires,
        campaigns: Object.fromEntries(campaigns.map(({ id, model }) => [id, model ?? null])),
      };
    } catch (error) {
      found = error.code ?? String(error);
    }
    check(code ? "directories refused" : "directories", name, () => equal(found, code ?? wanted));
  }
  const ledgers = (kind, cases) => {
    for (const { name, cap, receipts, text } of cases) {
      const kept = receipts.map(({ answers, at, crowd_epsilon, crowd_delta, ...rest }) => {
        const promised = crowd_epsilon && { crowdEpsilon: crowd_epsilon, crowdDelta: crowd_delta };
        return { ...rest, ...promised, at: 1e3 * at, questions: Array(answers) };
      });
      check(kind, name, () => equal(words.ledgerText(kept, cap), text));
    }
  };
  const explanations = (kind, cases, known, inACrowd) => {
    for (const { document, url, sentences, policy } of cases) {
      const told = ({ key, parameters, template, text }) => [key, Object.entries(parameters).sort(), template, text];
      const shown = (sentence) => told({ ...sentence, text: String(sentence) });
      check(kind, document, () => {
        const found = words.explained(known[document], url, inACrowd);
        equal([...found.sentences, found.policy].map(shown), [...sentences, policy].map(told));
      });
    }
  };
  ledgers("ledgers", files.words.ledgers);
  for (const { document, question, asked, payload, said } of files.words.said) {
    const about = [campaigns[document], campaigns[document].questions[question]];
    check("said", document, () => equal([words.asked(...about), words.said(...about, unhex(payload))], [asked, said]));
  }
  explanations("explained", files.words.explained, campaigns);
  for (const { document, record, label, problems, questions } of files.words.previews) {
    check("previews", document, () => {
      const told = words.preview(campaigns[document], record, label);
      equal(
        told.problems.map(({ feature }) => feature),
        problems,
      );
      equal(told.questions.length, questions.length);
      told.questions.forEach(({ asked, chance, truth, said }, i) => {
        const wanted = questions[i];
        equal(
          [asked, truth, said.map(([text]) => text)],
          [wanted.asked, wanted.truth, wanted.said.map(([text]) => text)],
        );
        [chance, ...said.map(([, share]) => share)].forEach((share, j) =>
          near(share, [wanted.chance, ...wanted.said.map(([, one]) => one)][j], 1e-12),
        );
      });
    });
  }

  const { accepted, refused, caps, explained, ledgers: kept } = files.crowd;
  const mixed = {};
  for (const { name, document, id, loss, reports, deltas } of accepted) {
    check("crowds", name, () => {
      refuses("crowd-unsupported", () => parseCampaign(document, id));
      const campaign = (mixed[name] = parseCampaign(document, id, crowds.checkCrowd));
      const { crowd } = campaign.privacy;
      equal([campaign.realisedEpsilon, crowds.reportsOf(crowd)], [loss, reports]);
      const tail = Math.min(1e-14, 1e-5 * crowd.delta);
      for (const [epsilon, delta] of deltas)
        near(crowds.deltaBound(campaign.questions, reports, epsilon, tail), delta, 1e-9);
    });
  }
  for (const { name, document, code } of refused) {
    check("crowds refused", name, () => {
      refuses(code, () => parseCampaign(document, undefined, crowds.checkCrowd));
      try {
        parseCampaign(document);
      } catch {
        return;
      }
      throw new Error("it passes unchecked");
    });
  }
  for (const { document, epsilon, crowd_epsilon, if_both_collude, code } of caps.filter(
    ({ code }) => code !== "total-above-cap", // which the device keeps
  )) {
    check("crowds capped", JSON.stringify([crowd_epsilon, if_both_collude]), () => {
      const set = {
        maxEpsilon: epsilon,
        maxCrowdEpsilon: crowd_epsilon ?? undefined,
        maxIfBothCollude: if_both_collude ?? undefined,
      };
      equal(crowds.capped(mixed[document], set), code);
    });
  }
  explanations("crowds explained", explained, mixed, crowds.inACrowd);
  ledgers("ledgers of crowds", kept);
  return checked;
}
