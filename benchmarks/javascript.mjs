// What one report costs in Node: the questions drawn, the record read, the answer randomised, the upload encoded.
//   make javascript && node benchmarks/javascript.mjs
import { readFileSync } from "node:fs";
import {
  encodeUpload,
  parseCampaign,
  perturb,
  randomBytes,
  uploadLength,
} from "../javascript/dist/ldp-bayes-client.min.js";

const ROUNDS = 41;
const REPORTS = 500; // in a round
const BOUND = 100; // microseconds of processor time

/** A campaign of one question over `d` cells, its probabilities safely below what epsilon 1 allows. */
function campaign(mechanism, d) {
  const share = (p) => String(BigInt(Math.floor(p * 2 ** 53)) << 11n);
  const e = Math.E * 0.999;
  const parameters = {
    de: { p: share(e / (e + d - 1)) },
    oue: { p: String(1n << 63n), q: share(1 / (e + 1)) },
  }[mechanism];
  const question = {
    kind: "pair",
    feature: "u",
    group: 1,
    encoding: "index",
    mechanism,
    domain_size: d,
    epsilon: 1,
    weight: 1,
    parameters,
  };
  return parseCampaign(
    JSON.stringify({
      version: 1,
      title: "t",
      label: { name: "y", classes: ["a", "b"] },
      features: [
        {
          name: "u",
          kind: "categorical",
          values: Array.from({ length: d / 2 }, (_, i) => `value ${i}`),
          missing: false,
        },
      ],
      privacy: { epsilon: 1 },
      questions: [question],
    }),
  );
}

function median(values) {
  return values.sort((a, b) => a - b)[values.length >> 1];
}

const figures = {
  node: process.version,
  cpu: readFileSync("/proc/cpuinfo", "utf8").match(/model name\s*: (.*)/)?.[1],
};
for (const [mechanism, d] of [
  ["de", 128],
  ["oue", 128],
]) {
  const asked = campaign(mechanism, d);
  const secrets = Array.from({ length: REPORTS }, () => randomBytes(32));
  const rounds = Array.from({ length: ROUNDS }, () => {
    const began = process.cpuUsage();
    for (const secret of secrets)
      encodeUpload(perturb(asked, { u: "value 40" }, "b", secret), uploadLength(asked));
    const { user, system } = process.cpuUsage(began);
    return (user + system) / REPORTS;
  });
  const found = median(rounds.slice(1));
  figures[`${mechanism} d=${d}`] = `${found.toFixed(1)} us of at most ${BOUND}`;
  if (found > BOUND) process.exitCode = 1;
}
console.log(JSON.stringify(figures, null, 1));
