// What a record holds, as numbers and indices: read alike by the encoder and by the classifier, by the rules of
// docs/values.md. Numbers are doubles, in the order of operations written here. Nothing throws: what cannot be read is
// missing.

const NUMERAL = /^[-+.e \t]*\d[-+.\de \t]*$/i; // of these texts Number takes the numerals and no other
const LONGEST_TEXT = 200; // of a declared one

export interface Bounds {
  readonly low: number;
  readonly high: number;
}

export const clip = (x: number, low: number, high: number): number => Math.min(Math.max(x, low), high);
export const add = (a: number, b: number): number => a + b;
export const composed = (text: string): string => text.normalize("NFC");

/** What a record holds under a name. */
export function held(record: unknown, name: string): unknown {
  try {
    return (record as Record<string, unknown>)[name];
  } catch {
    return;
  }
}

/** The number of a value, infinities included; NaN for anything else. */
export function numberOf(value: unknown): number {
  if (typeof value === "string") return value.length <= LONGEST_TEXT && NUMERAL.test(value) ? Number(value) : NaN;
  return /^[nb]/.test(typeof value) ? Number(value) : NaN; // number, bigint, boolean
}

const plain = (text: string): string =>
  // a double below 1 may be written 1.5e-7
  text.replace(/(\d)\.?(\d*)e-(\d+)/, (_, whole, fraction, zeros) => `0.${"0".repeat(zeros - 1)}${whole}${fraction}`);

/** The text that a value is compared by; null where it has none. */
export function textOf(value: unknown): string | null {
  if (typeof value === "string") return composed(value);
  if (value === !!value) value = Number(value);
  const whole = typeof value === "bigint" || Number.isInteger(value);
  if (!whole && !Number.isFinite(value)) return null;
  const text = whole ? String(BigInt(value as number)) : plain(String(value));
  return text.replace(whole ? "-" : "", "").length > LONGEST_TEXT ? null : text;
}

/** A whole number without the zeros behind its point; any other text as it is. */
const whole = (text: string | null): any => text?.replace(/^(-?\d+)\.0+$/, "$1");

/** The position of the declared text that a value means; -1 for anything else. */
export function position(value: unknown, texts: readonly string[]): number {
  const names: any[] = texts.map(composed);
  const digits = whole((value = textOf(value)) as any);
  // Where digits are not declared themselves, they have other names.
  return names.indexOf(
    [
      value,
      digits,
      names.find((name) => whole(name) === digits),
      ["false", "true"][digits],
      ["False", "True"][digits],
    ].find((name) => names.includes(name)),
  );
}

type Input = Bounds & { readonly name: string };

export interface Linear {
  readonly inputs: readonly string[];
  readonly outputs: readonly { readonly name: string }[];
  readonly matrix: readonly (readonly number[])[];
  readonly mean: readonly number[];
  readonly scale: readonly number[];
}

/**
 * The record's own value, or the output of a projection: (x - mean) / scale of its clipped inputs among `features`, added from left
 * to right; NaN without any input. A missing one stands at its mean, or at what `absent` says.
 */
export function valueOf(
  record: unknown,
  name: string,
  projection: Linear | null | undefined,
  features: readonly any[],
  absent?: (input: Input) => number | undefined,
): unknown {
  const row = projection?.matrix[projection.outputs.findIndex((output) => output.name === name)];
  if (!row) return held(record, name);
  const { inputs, mean, scale } = projection!;
  const numbers = inputs.map((input) => numberOf(held(record, input)));
  if (numbers.every(isNaN)) return NaN;
  return row.reduce((total, factor, i) => {
    const input: Input = features.find((feature) => feature.name === inputs[i]);
    const x = isNaN(numbers[i]!) ? (absent?.(input) ?? mean[i]!) : numbers[i]!;
    return total + factor * ((clip(x, input.low, input.high) - mean[i]!) / scale[i]!);
  }, 0);
}

/** A number with six digits, for people: as C's %g writes it. */
export function short(x: number): string {
  const [digits, power] = x.toExponential(5).split("e") as [string, string];
  if (+power >= -4 && +power < 6) return `${+x.toPrecision(6)}`;
  return `${digits.replace(/\.?0+$/, "")}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}
