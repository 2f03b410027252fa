// Words for people, the same to the letter in every client: protocols/vectors/words.json. A number has six digits, as C's %g writes it.
import { hex } from "./bytes.js";
import type { Receipt } from "./device/state.js";
import { total } from "./device/state.js";
import { cellsOf, isOpen } from "./document/schema.js";
import type { Campaign, Question } from "./document/types.js";
import { featureOf } from "./encoding.js";
import { decimal, floatUp, type Ratio } from "./exact/rationals.js";
import { sizeOf, WORDS, type Feature } from "./features.js";
import { ONE } from "./mechanisms/mechanism.js";
import { short } from "./values.js";
import { poolsOf } from "./wire.js";

const MOST_NAMED = 3;
const PEOPLE = 100;

const FATES: Readonly<Record<Receipt["fate"], string>> = {
  waiting: "on this device; nothing of it has left",
  "on-its-way": "an upload has begun, and is not known to have arrived",
  arrived: "handed over",
  refused: "the server says that it refused it; it is not sent again",
  expired: "given up after its time; it may have arrived",
  deleted: "deleted by a withdrawal after an upload had begun; it may have arrived",
};

/** A server's text on one line: what could move a cursor, break a line or turn its direction is escaped. */
export const plain = (text: string): string =>
  text
    .replace(/"/g, "'")
    .replace(/(?! )[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}]/gu, (found) =>
      found.replace(/[^]/g, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0")),
    );

/** `parts` of a whole, with so many decimals, without zeros at the end where it is `trimmed`. */
function decimals(units: bigint, places: number, trimmed: boolean): string {
  const whole = 10n ** BigInt(places);
  const text = `${units / whole}.${String(units % whole).padStart(places, "0")}`;
  return trimmed ? text.replace(/\.?0+$/, "") : text;
}

/** An epsilon as people write it, rounded up to four decimals. */
export function written(epsilon: number): string {
  const [n, d] = decimal(epsilon);
  return decimals((n * 10000n + d - 1n) / d, 4, true);
}

const hundredths = ([n, d]: Ratio): string => decimals((200n * n + d) / (2n * d), 2, false);

function dayOf(at: number): string {
  const date = new Date(at);
  return (isNaN(+date) ? "" : date.toJSON()).match(/^\d{4}-\d\d-\d\d/)?.[0] ?? "an unknown day";
}

const counted = (count: number, what: string): string => (count === 1 ? `1 ${what}` : `${count} ${what}s`);

/** What was spent where every relay keeps apart from its aggregator, rounded up, and the probability with which that may be exceeded. */
export const apartOf = (receipts: readonly Receipt[]): readonly [epsilon: number, delta: number] => [
  floatUp(total(receipts.map(({ epsilon, crowdEpsilon = epsilon }) => ({ epsilon: crowdEpsilon })))),
  floatUp(total(receipts.map(({ crowdDelta = 0 }) => ({ epsilon: crowdDelta })))),
];

/** What was spent in all campaigns. */
export function ledgerText(receipts: readonly Receipt[], cap: number): string {
  if (!receipts.length)
    return `This device has contributed to no campaign and has lost no privacy (epsilon 0 of at most ${written(cap)}).`;
  const lines = receipts.map(
    ({ title, at, epsilon, fate, questions, window, crowdEpsilon }) =>
      `* "${plain(title)}" on ${dayOf(at)}${window ? `, in ${window}` : ""}: ${counted(questions.length, "answer")}, ` +
      `with noise added on this device; epsilon ${written(epsilon)}` +
      `${crowdEpsilon ? `, ${written(crowdEpsilon)} where relay and aggregator keep apart` : ""}; ${FATES[fate]}.`,
  );
  const spent = `epsilon ${written(floatUp(total(receipts)))} of at most ${written(cap)}`;
  const [epsilon, delta] = apartOf(receipts);
  const apart = ` Where relays and aggregators keep apart: epsilon ${written(epsilon)}, but for a probability of ${short(delta)}.`;
  return [
    `This device has contributed to ${counted(receipts.length, "campaign")}. Privacy loss so far: ${spent}.${delta ? apart : ""}`,
    ...lines,
  ].join("\n");
}

/**
 * What an app says, in a form that it translates: the words of the `key` in another language take the same `parameters`, as
 * `template`, the English ones, does by `{name}`. As a text it is English.
 */
export class Sentence {
  constructor(
    readonly key: string,
    readonly parameters: Readonly<Record<string, number | string>>,
    readonly template: string,
  ) {}

  toString(): string {
    return this.template.replace(/{(\w+)}/g, (_, name) => `${this.parameters[name]}`);
  }
}

/**
 * Two sentences for the person who is asked, one more for each of operator, contact, privacy_url and keep_days that the campaign has, and
 * a paragraph for the app's privacy policy.
 */
export class Explanation {
  constructor(
    readonly sentences: readonly Sentence[],
    readonly policy: Sentence,
  ) {}

  toString(): string {
    return this.sentences.join(" ");
  }
}

/** How an answer went: sealed, by a relay that is at hand or no more, or "" for openly. */
export const wayOf = (relay: string | undefined): string =>
  relay === ""
    ? "sent to the server"
    : `sealed, by ${relay?.split("/")[2] ?? "a relay"}: it saw no answer, and the server no address`;

type Told = readonly [
  ConstructorParameters<typeof Sentence>,
  ConstructorParameters<typeof Sentence>,
  ConstructorParameters<typeof Sentence>,
];

/** Two sentences for the person, and one for privacy policies, in the place of those that a campaign without a crowd has. */
export type InACrowd = (campaign: Campaign<any>, plain: Told) => Told;

/** Members of a document that its author may leave out, with the sentence of each. */
const FOR_PEOPLE = {
  operator: "{operator} is responsible for this.",
  contact: "Questions and complaints go to {contact}.",
  privacy_url: "The privacy notice: {privacy_url}",
  keep_days: "Days after its end until nothing is kept by which your answer could be found: at most {keep_days}.",
};

/** What a campaign's noise means, in its own numbers; answers go to `url`. With a crowd `inACrowd` says it otherwise. */
export function explained(campaign: Campaign<any>, url: string, inACrowd: InACrowd = (_, plain) => plain): Explanation {
  const { questions, label, realisedEpsilon, title, gateway } = campaign;
  const told = {
    answers: poolsOf(campaign).length,
    questions: questions.length,
    label: plain(label.name || title),
    epsilon: written(realisedEpsilon),
  };
  // A report that somebody sends with probability P, anybody else sends with P exp(-epsilon) or more.
  const others = Math.floor(PEOPLE * Math.exp(-realisedEpsilon));
  const like = "Where {people} of many people with your answer would say what your device says, ";
  const noise = others
    ? `${like}at least {others} of as many people with any other answer would say it, too.`
    : `${like}fewer than 1 of as many people with some other answer may say it, too: the noise hides little.`;
  const way = gateway
    ? "sealed and by a relay, which sees no answer, while the server sees no address, unless the two work together"
    : "which sees the network address that it comes from, as with any request";
  const [first, second, policy] = inACrowd(campaign, [
    [
      "answers",
      told,
      "This device answers {answers} of {questions} questions about {label}, once, and changes what it says at random before " +
        "anything leaves it: the privacy loss is at most epsilon {epsilon}.",
    ],
    [others ? "hidden" : "bare", { people: PEOPLE, ...(others && { others }) }, noise],
    [
      gateway ? "policy-sealed" : "policy",
      { ...told, title: plain(title), url },
      'If you agree, this app takes part once in "{title}". Your device answers {answers} of {questions} questions about ' +
        "{label}, drawn by lot, changes what it says at random (local differential privacy with epsilon {epsilon}) and sends " +
        `that to {url}, ${way}. What is sent may be true of you or not, and nobody can tell for certain. It carries a random ` +
        "number, which tells it from others, no name and no identifier of you or the device. You may withdraw at any time: " +
        "what has not left is deleted.",
    ],
  ]);
  const more = Object.entries(FOR_PEOPLE).flatMap(([key, template]) => {
    const value = campaign[key as keyof typeof FOR_PEOPLE];
    return value == null
      ? []
      : [new Sentence(key, { [key]: typeof value === "number" ? value : plain(value) }, template)];
  });
  return new Explanation([new Sentence(...first), new Sentence(...second), ...more], new Sentence(...policy));
}

/** What a question is about. */
export function asked({ label: { name } }: Campaign<any>, { kind, feature, other }: Question): string {
  if (kind === "right") return `whether the model is right about ${name}`;
  if (kind === "score") return `what the model says of ${name}, and ${name}`;
  if (kind === "label") return name;
  const about = /value|square/.test(kind) ? `${feature} (${kind})` : feature;
  return [about, other || name].filter(Boolean).join(" and ");
}

/** With the class of a cell; a product is of none. */
export const at = ({ label }: Campaign<any>, { kind }: Question, cell: number, words: string): string =>
  kind === "product" || !label.name ? words : `${words}, ${label.classes[cell]}`;

export const endOf = (campaign: Campaign<any>, question: Question, cell: number, end: number): string =>
  at(campaign, question, cell, ["the lower end", "the upper end", "missing"][end]!);

/** Places of a sign for each class; of a product, in all. */
export const signsOf = ({ label }: Campaign<any>, { kind, domain_size: d }: Question): number =>
  kind === "product" ? d : d / label.classes.length;

function placeOf({ evaluation }: Campaign<any>, place: number): string {
  const { edges, model } = evaluation!;
  if (!edges) return `the model says ${model.classes[place]}`;
  const [low, high] = [edges[place - 1], edges[place]].map((edge) => edge !== undefined && short(edge));
  return `log odds ${!low ? `up to ${high}` : !high ? `above ${low}` : `(${low}, ${high}]`}`;
}

/** The name of a cell, of a question whose answers are cells. */
export function cellOf(campaign: Campaign<any>, question: Question, cell: number): string {
  const { classes } = campaign.label;
  const { kind, encoding, feature, other } = question;
  if (kind === "label") return classes[cell]!;
  if (kind === "right") return ["wrong", "right"][cell]!;
  const beside = kind === "joint" && featureOf(campaign, other)!;
  const size = beside ? cellsOf(beside) : encoding === "sign" ? signsOf(campaign, question) : classes.length;
  const [first, rest] = [Math.floor(cell / size), cell % size];
  if (encoding === "sign") return endOf(campaign, question, first, rest);
  if (campaign.evaluation) return at(campaign, question, rest, placeOf(campaign, first));
  const named = (found: Feature, place: number): string =>
    isOpen(found) && place === sizeOf(found) ? "missing" : WORDS[found.kind]!.named(found, place);
  const value = named(featureOf(campaign, feature)!, first);
  return beside ? `${value}, ${named(beside, rest)}` : at(campaign, question, rest, value);
}

/** The probabilities that the true cell is marked, and any other. */
export function lawOf({ parameters: { p, q, w = 1n }, domain_size: d }: Question): [Ratio, Ratio] {
  return [[p!, ONE], q ? [q, ONE] : [w * ONE - p!, ONE * BigInt(d - 1)]];
}

const littleEndian = (bytes: Uint8Array): number => parseInt(hex(bytes.slice().reverse()), 16);

/** What a payload claims; it is noise as well as truth, and nobody can tell which. */
export function said(campaign: Campaign<any>, question: Question, payload: Uint8Array): string {
  const { mechanism, parameters, domain_size: d } = question;
  if (parameters["scale"]) return `${d} numbers, of which noise is the most`;
  const chance = `with probability ${hundredths([parameters["p"]!, ONE])}`;
  const last = payload.length - 1;
  if (mechanism === "onebit")
    return `${endOf(campaign, question, littleEndian(payload.subarray(0, last)), payload[last]!)} (what lies there says so ${chance})`;
  const cells =
    mechanism === "de"
      ? [littleEndian(payload)]
      : [...Array(d).keys()].filter((cell) => (payload[cell >> 3]! >> (cell & 7)) & 1);
  const named = cells
    .slice(0, MOST_NAMED)
    .map((cell) => cellOf(campaign, question, cell))
    .join("; ");
  if (mechanism === "de" || parameters["w"] === 1n) return `${named} (true ${chance})`;
  const more = cells.length > MOST_NAMED ? "; ..." : "";
  const marked = `${cells.length} of ${d} answers are marked${cells.length ? ": " : ""}${named}${more}`;
  return `${marked} (the true one is among them ${chance})`;
}
