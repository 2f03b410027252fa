// Discrete Laplace noise, exactly (Canonne, Kamath, Steinke 2020).
import type { Coins } from "./coins.js";

/** True with probability exp(-numerator / denominator) (Algorithm 1). */
function bernoulliExp(coins: Coins, numerator: bigint, denominator: bigint): boolean {
  let trials = 1n;
  while (coins.below(denominator * trials) < numerator) trials++;
  return trials % 2n === 1n;
}

/** One number (Algorithm 2); the scale is a fraction in lowest terms. */
export function discreteLaplace(coins: Coins, numerator: bigint, denominator: bigint): bigint {
  for (;;) {
    const offset = coins.below(numerator);
    if (!bernoulliExp(coins, offset, numerator)) continue;
    let periods = 0n;
    while (bernoulliExp(coins, 1n, 1n)) periods++;
    const magnitude = (offset + numerator * periods) / denominator;
    const negative = coins.below(2n) === 1n;
    if (!(negative && magnitude === 0n)) return negative ? -magnitude : magnitude;
  }
}
