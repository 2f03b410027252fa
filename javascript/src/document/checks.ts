// The words that a document is checked with: a rule says whether a value is right, or throws.
import { ensure } from "../errors.js";
import { composed } from "../values.js";

export type Rule = (value: any) => unknown;

/** Throws LdpError `invalid-document`, naming what is wrong, unless the condition holds. */
export function must(right: unknown, name: string): asserts right {
  ensure(right, "invalid-document", name);
}

export const isObject = (value: unknown): value is Record<string, any> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** An object whose members are right, each by its rule, and that has no other. */
export function check(value: unknown, rules: Readonly<Record<string, Rule>>): true {
  must(isObject(value), "object");
  for (const name of Object.keys({ ...rules, ...value }))
    must(Object.keys(rules).includes(name) && rules[name]!(value[name]), name);
  return true;
}

export const isAbsent: Rule = (value) => value == null;
/** Absent, null, or right. */
export const optional =
  (rule: Rule): Rule =>
  (value) =>
    value == null || rule(value);
/** A JSON number's integer: 1, 1.0 and 1e0 are one number. */
export const whole =
  (least: number, most: number): Rule =>
  (value) =>
    Number.isInteger(value) && value >= least && value <= most;
export const among =
  (texts: string): Rule =>
  (value) =>
    texts.split(" ").includes(value);
export const like =
  (pattern: RegExp): Rule =>
  (value) =>
    typeof value === "string" && pattern.test(value);
export const isPositive: Rule = (value) => Number.isFinite(value) && value > 0;
/** A list of which every member is right. */
export const isList = (value: unknown, least: number, most: number, rule: Rule = () => true): value is any[] =>
  Array.isArray(value) && value.length >= least && value.length <= most && value.every((one) => rule(one));
export const isRow = (value: unknown, size: number, rule: Rule = Number.isFinite): value is number[] =>
  isList(value, size, size, (number) => Number.isFinite(number) && rule(number));
export const distinct = (values: readonly unknown[]): boolean => new Set(values).size === values.length;

// Control characters, ends of lines, marks of writing direction, and halves of a surrogate pair.
const NOT_TEXT = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/u;
const BLANK = /^[^\S\ufeff]*$/u; // Python's white space is JavaScript's without the byte order mark

export const isText = (value: unknown, longest = 200): boolean =>
  typeof value === "string" && [...value].length <= longest && !NOT_TEXT.test(value);
export const isName: Rule = (value) => isText(value) && !BLANK.test(value);
/** Different texts, none empty. */
export const areTexts = (values: unknown, least: number, most: number): values is string[] =>
  isList(values, least, most, (value) => isText(value) && value) && distinct(values);
/** Texts that stay different when accents are written in one way. */
export const areDeclared = (values: unknown, most: number): values is string[] =>
  areTexts(values, 2, most) && distinct(values.map(composed));

export function isInstant(text: any): boolean {
  // 2027-01-01T00:00:00Z, a time that exists
  return isText(text, 20) && text > "0001" && new Date(text).toJSON() === text.replace("Z", ".000Z");
}
