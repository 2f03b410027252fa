// A campaign that promises what its answers reveal once they are mixed with those of many devices: its checks, its caps and its words,
// loaded for such a campaign alone. protocols/ldp_protocols/blanket.py has the mathematics.
import type { Caps } from "../device/policy.js";
import { among, check, isAbsent, isName, isPositive, must, optional, whole } from "../document/checks.js";
import type { CheckCrowd } from "../document/campaign.js";
import type { Campaign, Crowd, Question } from "../document/types.js";
import { ensure } from "../errors.js";
import { decimal, larger, within, type Ratio } from "../exact/rationals.js";
import { ONE } from "../mechanisms/mechanism.js";
import { short } from "../values.js";
import { written, type InACrowd } from "../words.js";

const LEAST_DEVICES = 100;
const MOST_DEVICES = 2 ** 30;
const MOST_EPSILON = 64;
const LEAST_DELTA = 1e-15;
const MOST_DELTA = 1e-6;
const MOST_DAYS = 3650;

const INFLATION = 1 + 1e-6; // thousands of times what doubles lose
const TAIL_SHARE = 1e-5;
const LARGEST_TAIL = 1e-14;
const TAILS = 3;
const ROUNDING = 1 - 1e-14;
const PARTS = 8; // of a deviation
const BLOCKS = 64;
const LEAST = -700; // a logarithm
const SHIFT = 256n;

const { abs, exp, expm1, floor, log, log1p, max, min, sqrt } = Math;

/** The honest reports of a batch, which the bound counts. */
export function reportsOf({ devices, honest }: Crowd): number {
  const [n, d] = decimal(honest);
  return Number((n * BigInt(devices)) / d);
}

/**
 * Throws LdpError `invalid-document` unless a document may have its crowd; what it returns throws that, or `crowd-above-promise`, unless the
 * questions keep the promise.
 */
export const checkCrowd: CheckCrowd = ({ privacy, issuer, gateway }) => {
  const { answers, discrete, continuous, theta, release_every } = privacy;
  const crowd = privacy.crowd!;
  check(crowd, {
    devices: whole(LEAST_DEVICES, MOST_DEVICES),
    epsilon: (epsilon) => isPositive(epsilon) && epsilon <= min(MOST_EPSILON, privacy.epsilon), // of one answer no crowd reveals more
    delta: (delta) => isPositive(delta) && LEAST_DELTA <= delta && delta <= min(MOST_DELTA, 1 / crowd.devices),
    honest: (share) => isPositive(share) && share <= 1 && reportsOf(crowd) > 0,
    without_issuer: issuer ? isAbsent : isName,
    expires: optional(whole(1, MOST_DAYS)),
  });
  const byLot = among("one")(answers ?? "one") && theta == null;
  must(byLot && among("auto de")(discrete ?? "auto") && among("auto sign")(continuous ?? "auto"), "privacy");
  must(release_every === crowd.devices, "release_every"); // none in a series and in a round of moments, which are refused by that
  must(gateway, "gateway");
  must(!issuer || (issuer.relay_key && (issuer.tokens ?? 1) === 1), "issuer");
  return (questions) => {
    const byDe = questions.every(({ mechanism }) => mechanism === "de");
    must(byDe, "questions");
    const tail = min(LARGEST_TAIL, TAIL_SHARE * crowd.delta);
    ensure(deltaBound(questions, reportsOf(crowd), crowd.epsilon, tail) <= crowd.delta, "crowd-above-promise");
  };
};

/**
 * An upper bound of delta at `epsilon` for `n` mixed reports of devices that answer one of `questions`, all by direct encoding, by lot
 * (Balle, Bell, Gascon, Nissim 2019), with tails of probability `tail` added to it.
 */
export function deltaBound(questions: readonly Question[], n: number, epsilon: number, tail: number): number {
  const { rise, told, neither } = blanketOf(questions);
  const excess = expm1(epsilon);
  if (excess >= rise) return 0;
  const p = min(2 * told, 1 - Number.EPSILON / 2);
  const step = rise * (2 + excess);
  const width = max(1, floor(sqrt(n * p * (1 - p)) / PARTS));
  const end = min(n + 1 - beyond(n, 1 - p, p, tail), n + 1);
  let mean = 0;
  for (let least = beyond(n, p, 1 - p, tail); least < end; least += width) {
    const most = min(least + width - 1, n);
    const others = quantile(neither / (1 - p), n - most, tail);
    const drift = least * ((excess * (2 + rise)) / (2 * step)) + others * (excess / step);
    const threshold = max((most / 2 + drift * ROUNDING) * ROUNDING, most / 2);
    mean += interval(least, width, n, p) * fairExcess(most, threshold);
  }
  return min(1, ((step * mean) / n) * INFLATION + TAILS * tail);
}

/** The largest likelihood ratio of one report, less 1; how likely it is the other record's, and one that any record gives with neither. */
function blanketOf(questions: readonly Question[]) {
  const parts = questions.map(({ parameters, domain_size, weight }) => {
    const [p, d] = [parameters["p"]!, BigInt(domain_size)];
    const other = ONE - p;
    return { d, other, excess: p * (d - 1n) - other, per: [BigInt(weight) << SHIFT, ONE * (d - 1n)] as Ratio };
  });
  const [a, b] = parts.map(({ excess, other }): Ratio => [excess, other]).reduce(larger);
  // A question of a smaller ratio reveals no more than one of the largest that is answered less often.
  let [told, mass, total] = [0n, 0n, 0];
  parts.forEach(({ d, other, excess, per: [units, parts] }, i) => {
    told += (units * excess * b) / (parts * a);
    mass += (units * other * d) / parts;
    total += questions[i]!.weight;
  });
  const double = (units: bigint): number => Number(units) / 2 ** 256;
  return {
    rise: double((a << SHIFT) / b),
    told: double(told) / total,
    neither: double(mass - 2n * told) / total,
  };
}

/** An r with P(Bin(trials, p) < r) <= tail: exp(s r) E[exp(-s R)] is at most that, for any s > 0. */
function quantile(p: number, trials: number, tail: number): number {
  if (p <= 0 || !trials) return 0;
  const wanted = -log(tail);
  const s = sqrt((2 * wanted) / max(trials * (p - p * p), p));
  const logMean = trials * log1p(max(p * expm1(-s), -1 + 1e-300));
  return max(0, (-logMean * ROUNDING - wanted * INFLATION) / s);
}

/** An upper bound of P(first <= Bin(trials, p) < first + width), by the geometric progression from its start. */
function interval(first: number, width: number, trials: number, p: number): number {
  const odds = (trials - first) / (first + 1);
  const growth = odds ? max(log(odds) + log(p) - log1p(-p), LEAST) : LEAST;
  const terms = abs(growth) * width < 1e-9 ? width : expm1(growth * width) / expm1(growth);
  return exp(logProbability(first, trials, p)) * terms;
}

/**
 * An upper bound of E[(X - threshold)+], X ~ Bin(trials, 1/2), threshold >= trials / 2, in blocks, each below the geometric progression
 * from its start; the last one has no end.
 */
function fairExcess(trials: number, threshold: number): number {
  const block = max(1, floor(sqrt(trials) / (2 * PARTS)));
  let [mean, start] = [0, floor(threshold) + 1];
  for (let number = 1; number <= BLOCKS && start <= trials; number++, start += block) {
    const fall = (2 * start + 1 - trials) / (start + 1); // 1 - the ratio of neighbours, in (0, 1]
    const rate = fall < 1 ? min(-log1p(-fall), -LEAST) : -LEAST;
    const rest = number === BLOCKS ? 0 : exp(-rate * block);
    const terms = (rest ? -expm1(-rate * block) : 1) / fall;
    const weighted = max(((1 - fall) * terms - block * rest) / fall, 0);
    mean += exp(logProbability(start, trials, 0.5)) * ((start - threshold) * terms + weighted);
  }
  return mean;
}

/** An upper bound of ln P(Bin(trials, p) = successes) (Loader 2000). */
function logProbability(successes: number, trials: number, p: number): number {
  const rest = trials - successes;
  if (!successes || !rest) return max(trials * (successes ? log(p) : log1p(-p)), LEAST);
  const least = (n: number): number => 1 / (12 * n) - 1 / (360 * n ** 3);
  const remainders = 1 / (12 * trials) - least(successes) - least(rest);
  const far = deviance(successes, trials * p) + deviance(rest, trials * (1 - p));
  return max(0.5 * log(trials / (2 * Math.PI * successes * rest)) - far + remainders, LEAST);
}

/** One more than the largest k below the mean with P(Bin(trials, p) <= k) <= tail by Chernoff's bound. */
function beyond(trials: number, p: number, q: number, tail: number): number {
  const [wanted, mean] = [-log(tail) * INFLATION, trials * p];
  let [low, high] = [-1, floor(mean) + 1];
  while (high - low > 1) {
    const middle = floor((low + high) / 2);
    const far =
      (middle ? deviance(middle, mean) : mean) + (middle < trials ? deviance(trials - middle, trials * q) : 0);
    if (middle <= mean && far >= wanted) low = middle;
    else high = middle;
  }
  return low + 1;
}

/** x ln(x / mean) + mean - x >= 0, x > 0. */
function deviance(x: number, mean: number): number {
  const part = (x - mean) / (x + mean);
  if (abs(part) >= 0.1) return x * log(x / mean) + mean - x;
  let series = 0;
  for (let power = 17; power > 1; power -= 2) series = (series + 1 / power) * part * part;
  return (x - mean) * part + 2 * x * part * series;
}

/** Why the caps forbid a campaign with a crowd, null where they do not. */
export function capped({ privacy, loss }: Campaign<any>, { maxCrowdEpsilon, maxIfBothCollude }: Caps): string | null {
  if (!maxCrowdEpsilon || !maxIfBothCollude) return "crowd-cap-missing";
  if (privacy.crowd!.epsilon > maxCrowdEpsilon) return "crowd-above-cap";
  return within(loss, maxIfBothCollude) ? null : "loss-above-cap";
}

/** The refusals of `capped` in words. */
export const CAPPED: Readonly<Record<string, string>> = {
  "loss-above-cap": "the campaign costs more than maxEpsilon, or with a crowd maxIfBothCollude, allows",
  "crowd-above-cap": "the campaign's crowd promises less than maxCrowdEpsilon asks for",
  "crowd-cap-missing": "the campaign has a crowd; maxCrowdEpsilon and maxIfBothCollude allow what it costs",
};

const grouped = (whole: number): string => String(BigInt(whole)).replace(/\B(?=(\d{3})+$)/g, ",");

/** exp(epsilon), to a tenth below 10 and to a whole number from there on. */
function oddsOf(epsilon: number): string {
  const odds = exp(epsilon);
  return odds < 9.95 ? `${floor(10 * odds + 0.5) / 10}` : grouped(floor(odds + 0.5));
}

/** What a campaign with a crowd says in the place of what one with a gateway does. */
export const inACrowd: InACrowd = ({ privacy: { crowd }, realisedEpsilon }, [[, told], , [, more, sealed]]) => {
  const { epsilon, delta, devices } = crowd!;
  const first = { ...told, odds: oddsOf(realisedEpsilon), crowd_odds: oddsOf(epsilon) };
  const mixed = { devices: grouped(devices), crowd_epsilon: written(epsilon) };
  return [
    [
      "crowd-answers",
      first,
      "This device answers {answers} of {questions} questions about {label}, once, with noise, in a sealed envelope.",
    ],
    [
      "crowd",
      { ...first, ...mixed },
      "Whoever opens envelopes does not know whose they are, and {devices} come at once: at most {crowd_epsilon} (odds " +
        "{crowd_odds} to 1) is learned about you. If the two companies broke their promise to keep apart, it would be at most " +
        "{epsilon} about that one answer (odds {odds} to 1), and nothing about the others.",
    ],
    [
      "policy-crowd",
      { ...more, ...mixed, crowd_delta: short(delta) },
      `${sealed} The relay forwards answers {devices} at a time, mixed: of what the server sees at most epsilon ` +
        "{crowd_epsilon} (delta {crowd_delta}) is about you.",
    ],
  ];
};
