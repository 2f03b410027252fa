// What a device would say of a record: for each question the truth, and how likely each answer is. For tests, debug builds and the
// curious: it shows values of the record, and must not be sent anywhere.
import type { Campaign, Question } from "./document/types.js";
import { isObject } from "./document/checks.js";
import { featureOf, itemOf } from "./encoding.js";
import { Coins } from "./exact/coins.js";
import { LdpError } from "./errors.js";
import type { Ratio } from "./exact/rationals.js";
import { ONE, UNIT, type Moment } from "./mechanisms/mechanism.js";
import { oneAt } from "./mechanisms/onebit.js";
import { problems, type Problem } from "./problems.js";
import { add, clip, numberOf, position, short, valueOf, type Bounds } from "./values.js";
import { asked, at, cellOf, endOf, lawOf, plain } from "./words.js";
import { poolsOf } from "./wire.js";

const MOST_SHOWN = 8;

/** What can be said, and the probability that an answer names it. */
export type Said = readonly [words: string, chance: number];

/** One question of a campaign, and what would be said to it. */
export interface PreviewedQuestion {
  readonly asked: string;
  /** The probability that this device is asked it: what is drawn by lot has less than 1. */
  readonly chance: number;
  /**
   * What is true of the record; null where no label is given, and where the record has no usable value of a feature that is complete: a
   * random one is answered then.
   */
  readonly truth: string | null;
  /** None without a truth. What says one thing adds up to 1, a set names several; of noisy numbers there is what is added to. */
  readonly said: readonly Said[];
}

/** What is wrong with a record, and every question of the campaign, in its order. As a text it is a table. */
export class Preview {
  constructor(
    readonly problems: readonly Problem[],
    readonly questions: readonly PreviewedQuestion[],
  ) {}

  toString(): string {
    const wrong = this.problems.map(
      (one) => `! ${plain(`${one.feature || "the record"}: ${one.wrong}; ${one.right}`)}`,
    );
    const lines = this.questions.flatMap(({ asked, chance, truth, said }) => {
      const known = truth === null ? "what is true is not known" : `what is true is ${plain(truth)}`;
      const rows = [...said].sort(([, a], [, b]) => b - a).slice(0, MOST_SHOWN);
      return [
        `${plain(asked)}, asked with probability ${chance.toFixed(3)}: ${known}`,
        ...rows.map(([words, share]) => `  ${share.toFixed(3)}  ${plain(words)}`),
        ...(said.length > MOST_SHOWN ? [`         and ${said.length - MOST_SHOWN} more`] : []),
      ];
    });
    return [...wrong, ...lines].join("\n");
  }
}

/** What this campaign would ask of a record of class `label`, and what would be said. Throws nothing, whatever the record holds. */
export function preview(campaign: Campaign<any>, record: unknown, label?: unknown): Preview {
  const index = position(label ?? "", campaign.label.classes);
  const total = new Map<Question, number>();
  for (const pool of poolsOf(campaign))
    for (const one of pool) total.set(one, pool.map(({ weight }) => weight).reduce(add));
  const questions = campaign.questions.map((question) => {
    const [truth, said] = (isObject(record) && index >= 0 && told(campaign, question, record, index)) || [null, []];
    return { asked: asked(campaign, question), chance: question.weight / total.get(question)!, truth, said };
  });
  return new Preview(problems(campaign, record, label), questions);
}

/** Truth and answers; nothing where a random value would be answered. */
function told(
  campaign: Campaign<any>,
  question: Question,
  record: unknown,
  label: number,
): [string, Said[]] | undefined {
  const { kind, encoding, feature, other, mechanism, parameters, domain_size: d } = question;
  let up: bigint | undefined; // the probability of the stochastic bit of a sign, over 2^64
  const coins = Object.assign(new Coins(drawn), { bernoulli: (probability: bigint) => ((up = probability), true) });
  let item: number | Moment;
  try {
    item = itemOf(campaign, question, record, label, coins);
  } catch {
    return undefined;
  }
  if (encoding === "index") {
    const truth = cellOf(campaign, question, item as number);
    return [
      truth,
      parameters["scale"] ? [added(question, truth, 1)] : marked(campaign, question, { [item as number]: [1n, 1n] }),
    ];
  }
  const numbers = [feature, other].flatMap((name) => {
    if (name == null) return [];
    const { low, high } = featureOf(campaign, name) as unknown as Bounds;
    return [clip(numberOf(valueOf(record, name, campaign.projection, campaign.features)), low, high)];
  });
  const words = numbers.some(isNaN)
    ? "missing"
    : numbers.map(short).join(" times ") + (kind === "square" ? " squared" : "");
  const truth = at(campaign, question, label, words);
  if (encoding === "sign") {
    const place = item as number;
    const law: Law = up === undefined ? { [place]: [1n, 1n] } : { [place]: [up, ONE], [place - 1]: [ONE - up, ONE] };
    return [truth, marked(campaign, question, law)];
  }
  const { cell, value } = item as Moment;
  if (mechanism !== "onebit") {
    const named = kind === "product" ? "" : campaign.label.classes[cell]!;
    return [truth, [added(question, named, Number(value) / UNIT)]];
  }
  const said = [...Array(d).keys()].flatMap((one): Said[] => {
    const one64 = oneAt(parameters, one === cell ? value : 0n);
    return [ONE - one64, one64].map((share, end) => [endOf(campaign, question, one, end), share64(share) / d]);
  });
  return [truth, said];
}

/** By cell, the probability that it is the true one. */
type Law = Readonly<Record<number, Ratio>>;

const drawn = (): never => {
  throw new LdpError("drawn");
};

const share64 = (share: bigint): number => Number(share) / Number(ONE);

/** Every cell, with the probability that an answer marks it. */
function marked(campaign: Campaign<any>, question: Question, law: Law): Said[] {
  const [[p], [n, d]] = lawOf(question);
  const q = Number(n) / Number(d);
  return [...Array(question.domain_size).keys()].map((cell) => {
    const [part, whole] = law[cell] ?? [0n, 1n];
    // q + (p - q) P, over one denominator, so that no digit is lost
    const share = Number(n * (whole - part) * ONE + p * part * d) / Number(d * whole * ONE);
    return [cellOf(campaign, question, cell), part ? share : q];
  });
}

/** What a noisy vector says: its one number that is not 0, and the scale of the noise that is added to each. */
function added({ parameters: { scale, grid = 0n }, domain_size: d }: Question, named: string, value: number): Said {
  const parts = [named ? `${short(value)} at ${named}` : short(value)];
  if (d > 1) parts.push(`0 at ${d - 1} others`);
  const noise = Number(scale) / 2 ** (40 + Number(grid));
  return [[...parts, `noise of scale ${short(noise)} is added to each`].join("; "), 1];
}
