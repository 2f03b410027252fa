// The questions of a document, checked against the schema that stands beside them.
import { LdpError } from "../errors.js";
import { within, type Ratio } from "../exact/rationals.js";
import { MECHANISMS } from "../mechanisms/registry.js";
import { ONE, type Mechanism } from "../mechanisms/mechanism.js";
import { KINDS } from "../questions/registry.js";
import type { Campaign, Question } from "./campaign.js";
import { among, check, isName, isObject, must, optional, own, whole } from "./checks.js";
import { isWeight, MOST_CELLS } from "./schema.js";

export const MOST_PRODUCTS = 8192; // questions about two features, in a round of moments

/** Positive integers, each a number or decimal digits in the document. */
function readNumbers({ names, makes }: Mechanism, parameters: any, d: number): Question["parameters"] {
  const refuseUnless = (right: boolean): void => {
    if (!right) throw new LdpError("invalid-parameters", names);
  };
  const wanted = names.split(" ");
  refuseUnless(Object.keys(parameters).length === wanted.length);
  const numbers = Object.fromEntries(wanted.map((name) => {
    const value = own(parameters, name) && parameters[name];
    refuseUnless(typeof value === "string" ? /^[1-9][0-9]{0,39}$/.test(value) : Number.isSafeInteger(value) && value > 0);
    return [name, BigInt(value)];
  }));
  refuseUnless([numbers.p, numbers.q].every((share) => share === undefined || share < ONE) && makes(numbers, BigInt(d)));
  return numbers;
}

export function readQuestion(
  value: any, index: number, { asked, label, asks }: Pick<Campaign, "asked" | "label" | "asks">, losses: Map<string, Ratio>,
): Question {
  const place = `questions[${index}]`;
  check(value, place, {
    kind: (kind) => own(KINDS, kind),
    group: whole(0, asked.length + MOST_PRODUCTS),
    encoding: among("index sign moment"),
    mechanism: isName,
    domain_size: whole(1, MOST_CELLS),
    epsilon: Number.isFinite,
    weight: isWeight,
    parameters: isObject,
    feature: optional(isName),
    other: optional(isName),
  });
  const { kind, group, encoding, mechanism: name, feature, other, domain_size: d, epsilon } = value;
  const find = (text: string) => asked.find((one) => one.name === text);
  if (kind === "product") {
    must(find(feature) && find(other) && group > asked.length, `${place}.other`);
  } else {
    must(group <= asked.length && other == null, `${place}.group`);
    must((group ? asked[group - 1]!.name : null) === (feature ?? null), `${place}.feature`);
  }
  const cells = KINDS[kind]!.cells(encoding, find(feature), label.classes.length, asks === "moments");
  must(d === cells, `${place}.domain_size`);
  if (!own(MECHANISMS, name)) throw new LdpError("unknown-mechanism", name);
  const mechanism = MECHANISMS[name]!;
  must(mechanism.encodings.includes(encoding), `${place}.mechanism`);
  const parameters = readNumbers(mechanism, value.parameters, d);
  const known = [name, d, ...Object.values(parameters)].join();
  const loss = losses.get(known) ?? mechanism.loss(parameters, BigInt(d));
  losses.set(known, loss);
  if (!(epsilon > 0 && within(loss, epsilon))) throw new LdpError("loss-above-epsilon", place);
  return { ...value, index, parameters, loss };
}
