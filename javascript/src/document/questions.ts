// The questions of a document, checked against the schema that stands beside them.
import { ensure } from "../errors.js";
import { within, type Ratio } from "../exact/rationals.js";
import { MECHANISMS } from "../mechanisms/registry.js";
import { ONE, type Mechanism } from "../mechanisms/mechanism.js";
import { domainOf, featureOf } from "../encoding.js";
import type { Campaign, Question } from "./types.js";
import { among, check, isAbsent, isName, isObject, optional, whole, type Rule } from "./checks.js";

const INVALID = "invalid-parameters";
const MOST_DRAWN = 2 ** 30; // weight of one question
export const MOST_PRODUCTS = 8192; // questions about two features, in a round of moments

/** Positive integers, each a number or decimal digits in the document. */
function readNumbers(names: string, parameters: any): Question["parameters"] {
  const wanted = names.split(" ");
  const right =
    Object.keys(parameters).length === wanted.length &&
    wanted.every((name) => {
      const value = parameters[name];
      const number = typeof value === "string" || Number.isSafeInteger(value);
      return number && /^[1-9]\d{0,39}$/.test(value) && !(/^[pq]$/.test(name) && BigInt(value) >= ONE);
    });
  ensure(right, INVALID, names);
  return Object.fromEntries(wanted.map((name) => [name, BigInt(parameters[name])]));
}

export function readQuestion(
  value: any,
  index: number,
  campaign: Pick<Campaign, "asked" | "label" | "asks" | "evaluation">,
  losses: Record<string, Ratio>,
): Question {
  const { other, group, encoding, mechanism: name, domain_size: d, epsilon } = value ?? {};
  const { asked, evaluation } = campaign;
  const both = !isAbsent(other);
  const groups = evaluation ? 0 : asked.length;
  // The label (group 0) names nothing, a product and a joint two features, any other question the feature of its group.
  const isFeature: Rule = (text) => featureOf(campaign, text);
  const isSubject: Rule = (text) => (text ?? undefined) === asked[group - 1]?.name;
  const mechanism: Mechanism | undefined = MECHANISMS[name];
  check(value, {
    kind: isName,
    encoding: among("index sign moment"),
    group: both ? whole(groups + 1, groups + MOST_PRODUCTS) : whole(0, groups),
    feature: both ? isFeature : isSubject,
    other: optional(isFeature),
    domain_size: (cells) => cells === domainOf(campaign, value),
    mechanism: (text) => isName(text) && (!mechanism || mechanism.encodings.includes(encoding)),
    epsilon: Number.isFinite,
    weight: whole(1, MOST_DRAWN),
    parameters: isObject,
  });
  ensure(mechanism, "unknown-mechanism", name);
  const parameters = readNumbers(mechanism.names, value.parameters);
  const loss = (losses[[name, d, ...Object.values(parameters)].join()] ??= mechanism.loss(parameters, BigInt(d)));
  ensure(loss[0] > 0n, INVALID, mechanism.names);
  ensure(epsilon > 0 && within(loss, epsilon), "loss-above-epsilon", `questions[${index}]`);
  return { ...value, index, parameters, loss, width: mechanism.width(d) };
}
