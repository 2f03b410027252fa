import type { Coins } from "../exact/coins.js";
import { discreteLaplace } from "../exact/laplace.js";
import type { Ratio } from "../exact/rationals.js";
import { clip } from "../values.js";
import type { Mechanism, Moment, Perturb } from "./mechanism.js";

const FINEST_GRID = 12n;

/** The largest magnitude of a noisy cell: the unit and 16 scales of noise. */
export const cellBound = (grid: bigint, scale: bigint): bigint =>
  (1n << grid) + ((16n * scale + (1n << 40n) - 1n) >> 40n);

function noisyVector(grid: bigint, scale: bigint, d: number, item: number, value: bigint, coins: Coins): Uint8Array {
  const common = scale & -scale;
  const unit = common < 1n << 40n ? common : 1n << 40n;
  const bound = Number(cellBound(grid, scale));
  const view = new DataView(new ArrayBuffer(width(d)));
  for (let cell = 0; cell < d; cell++) {
    const noisy = (cell === item ? value : 0n) + discreteLaplace(coins, scale / unit, (1n << 40n) / unit);
    view.setInt32(4 * cell, clip(Number(noisy), -bound, bound), true);
  }
  return new Uint8Array(view.buffer);
}

const lossOf = (grid: bigint, scale: bigint): Ratio =>
  grid <= FINEST_GRID && cellBound(grid, scale) < 1n << 31n ? [1n << (41n + grid), scale] : [0n, 1n];

const width = (d: number): number => 4 * d;

/** Summing histogram encoding: a one-hot vector with discrete Laplace noise in every cell. */
export const she: Mechanism = {
  names: "scale",
  encodings: "index",
  loss: ({ scale }) => lossOf(0n, scale),
  width,
};

export const perturbShe: Perturb<number> = ({ scale }, d, item, coins) => noisyVector(0n, scale, d, item, 1n, coins);

/** The Laplace vector: a value at its cell, rounded at random to the grid, with noise in every cell. */
export const laplace: Mechanism = {
  names: "grid scale",
  encodings: "moment",
  loss: ({ grid, scale }) => lossOf(grid, scale),
  width,
};

export const perturbLaplace: Perturb<Moment> = ({ grid, scale }, d, { cell, value }, coins) => {
  const cut = 52n - grid;
  const up = coins.bernoulli(BigInt.asUintN(Number(cut), value) << (64n - cut));
  return noisyVector(grid, scale, d, cell, (value >> cut) + BigInt(up), coins);
};
