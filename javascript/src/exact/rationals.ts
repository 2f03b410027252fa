// Rational numbers, and logarithms rounded up: what decides whether a loss stays within its epsilon.

/** Numerator and denominator; the denominator is above 0. */
export type Ratio = readonly [bigint, bigint];

const LOG_UNIT = 1n << 128n; // a logarithm is an integer L and means L / 2^128

export const larger = ([a, b]: Ratio, [c, d]: Ratio): Ratio => (a * d > c * b ? [a, b] : [c, d]);
export const sum = ([a, b]: Ratio, [c, d]: Ratio): Ratio => [a * d + c * b, b * d];

/** A lower bound of exp(x), x >= 0, over 2^128: every term of the series is rounded down. */
function expDown(x: bigint): bigint {
  let [term, total] = [LOG_UNIT, LOG_UNIT];
  for (let i = 1n; term > 0n; i++) total += term = (term * x) / (LOG_UNIT * i);
  return total;
}

/** An upper bound of ln(a / b), the least x whose exp certainly reaches it; 0 for a <= b, and for no other. */
export function logUp(a: bigint, b: bigint): Ratio {
  let [low, high] = [0n, 128n * LOG_UNIT];
  while (low < high) {
    const middle = (low + high) / 2n;
    if (expDown(middle) * b >= a * LOG_UNIT) high = middle;
    else low = middle + 1n;
  }
  return [low, LOG_UNIT];
}

/** A double as it is. */
export function exact(double: number): Ratio {
  let parts = 1n;
  for (; !Number.isInteger(double); double *= 2) parts *= 2n;
  return [BigInt(double), parts];
}

/** A positive double, as its shortest text says it. */
export function decimal(double: number): Ratio {
  const [mantissa, exponent] = double.toExponential().split("e") as [string, string];
  const digits = mantissa.replace(".", "");
  const power = Number(exponent) - (digits.length - 1);
  return [BigInt(digits) * 10n ** BigInt(Math.max(power, 0)), 10n ** BigInt(Math.max(-power, 0))];
}

/** Whether a loss is certainly at most epsilon: the lesser of its decimal text and its double. */
export const within = ([n, d]: Ratio, epsilon: number): boolean =>
  [decimal(epsilon), exact(epsilon)].every(([m, e]) => n * e <= m * d);

/** The next double above a positive one. */
export function nextUp(x: number): number {
  const double = Float64Array.of(x);
  new BigUint64Array(double.buffer)[0]!++;
  return double[0]!;
}

/** The least double that is not below a loss (0, or not many orders below 1). */
export function floatUp([n, d]: Ratio): number {
  for (let double = Number((n << 256n) / d) / 2 ** 256; ; double = nextUp(double)) {
    const [m, e] = exact(double);
    if (m * d >= n * e) return double;
  }
}
