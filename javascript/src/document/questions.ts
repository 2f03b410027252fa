// The questions of a document, checked against the schema that stands beside them.
import { ensure } from "../errors.js";
import { within, type Ratio } from "../exact/rationals.js";
import { MECHANISMS } from "../mechanisms/registry.js";
import { ONE, type Mechanism } from "../mechanisms/mechanism.js";
import { featureOf } from "../questions/kind.js";
import { KINDS } from "../questions/registry.js";
import type { Campaign, Question } from "./campaign.js";
import type { Rare } from "./rare.js";
import { isOpen } from "./schema.js";
import { among, check, isAbsent, isName, isObject, own, whole, type Rule } from "./checks.js";

const MOST_DRAWN = 2 ** 30; // weight of one question
export const MOST_PRODUCTS = 8192; // questions about two features, in a round of moments

/** Positive integers, each a number or decimal digits in the document. */
function readNumbers({ names, makes }: Mechanism, parameters: any, d: number): Question["parameters"] {
  const refuseUnless = (right: boolean): void => ensure(right, "invalid-parameters", names);
  const wanted = names.split(" ");
  refuseUnless(Object.keys(parameters).length === wanted.length);
  const numbers = Object.fromEntries(
    wanted.map((name) => {
      const value = own(parameters, name) && parameters[name];
      refuseUnless(
        typeof value === "string" ? /^[1-9][0-9]{0,39}$/.test(value) : Number.isSafeInteger(value) && value > 0,
      );
      return [name, BigInt(value)];
    }),
  );
  refuseUnless(![numbers.p, numbers.q].some((share) => share! >= ONE) && makes(numbers, BigInt(d)));
  return numbers;
}

type About = Pick<Campaign, "asked" | "label" | "asks" | "candidates">;

export function readQuestion(
  value: any,
  index: number,
  campaign: About,
  losses: Map<string, Ratio>,
  rare?: Rare,
): Question {
  const place = `questions[${index}]`;
  const { kind, group, encoding, mechanism: name, feature, other, domain_size: d, epsilon } = value ?? {};
  const { asked, label, asks, candidates } = campaign;
  const round = asks ?? "model";
  const kinds = rare || round !== "model" ? rare!.ROUNDS[round]! : KINDS;
  const find = (text: string) => featureOf(campaign, text);
  const product = kind === "product";
  const another = product || kind === "triple";
  const open = [feature, other].map(find).some((one) => !!one && isOpen(one));
  // A sign has a third place where something may be missing; a moment, which has none, is not asked for then.
  const places = encoding === "sign" ? 2 + +open : encoding === "moment" ? +!open : 1;
  const groups = asked.length;
  const subject = candidates || !group ? null : asked[group - 1]?.name;
  const isSubject: Rule = product ? find : (text) => (text ?? null) === subject;
  const mechanism: Mechanism | undefined = own(MECHANISMS, name) && (MECHANISMS[name] ?? (rare as any)[name]);
  check(value, place, {
    kind: (text) => own(kinds, text),
    encoding: (text) => among(kinds[kind]!.encodings)(text),
    group: product ? whole(groups + 1, groups + MOST_PRODUCTS) : whole(0, candidates ? candidates.length - 1 : groups),
    feature: isSubject,
    other: another ? find : isAbsent,
    domain_size: (cells) =>
      cells && cells === kinds[kind]!.cells(find(feature), label.classes.length, find(other)) * places,
    mechanism: (text) => isName(text) && (!mechanism || mechanism.encodings.includes(encoding)),
    epsilon: Number.isFinite,
    weight: whole(1, MOST_DRAWN),
    parameters: isObject,
  });
  ensure(mechanism, "unknown-mechanism", name);
  const parameters = readNumbers(mechanism, value.parameters, d);
  const known = [name, d, ...Object.values(parameters)].join();
  const loss = losses.get(known) ?? mechanism.loss(parameters, BigInt(d));
  losses.set(known, loss);
  ensure(epsilon > 0 && within(loss, epsilon), "loss-above-epsilon", place);
  const perturb: Question["perturb"] = (item, coins) => mechanism.perturb(parameters, d, item, coins);
  return { ...value, index, parameters, loss, item: kinds[kind]!.item, perturb };
}
