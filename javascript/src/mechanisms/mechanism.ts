// What a mechanism offers: its numbers in a document and the loss that they mean, which whoever is asked needs to know; and the
// perturbation, for whoever answers. One file each; a new one is a row of registry.ts and one of perturbations.ts.
import type { Coins } from "../exact/coins.js";
import type { Ratio } from "../exact/rationals.js";

/** A value that belongs to one cell: `value` is an integer V and means V / 2^52. */
export interface Moment {
  readonly cell: number;
  readonly value: bigint;
}

/** The numbers of a mechanism: a probability P means P / 2^64, a scale S means S / 2^40. */
export type Parameters = Readonly<Record<string, bigint>>;

export interface Mechanism {
  /** Names of its numbers, with spaces between. */
  readonly names: string;
  /** Encodings of the questions that it answers. */
  readonly encodings: string;
  /**
   * The worst-case log likelihood ratio, rounded up: proved in protocols/ldp_protocols/verification.py. 0 where numbers that are in
   * range make no mechanism over `d` cells, or one that carries no signal.
   */
  readonly loss: (numbers: any, d: bigint) => Ratio;
  /** Bytes of a payload. */
  readonly width: (d: number) => number;
}

/** The payload for an item of a mechanism of these numbers over `d` cells. */
export type Perturb<Item = any> = (numbers: any, d: number, item: Item, coins: Coins) => Uint8Array;

export const ONE = 1n << 64n;
export const UNIT = 2 ** 52;

/** Bytes of an index on the wire. */
export const indexWidth = (d: number): number => (d <= 256 ? 1 : d <= 65536 ? 2 : 4);

export const bitmapWidth = (d: number): number => (d + 7) >> 3;

export function bitmap(indices: readonly number[], d: number): Uint8Array {
  const bytes = new Uint8Array(bitmapWidth(d));
  for (const index of indices) bytes[index >> 3]! |= 1 << (index & 7);
  return bytes;
}

/** Indices of the d - 1 others. */
export const skipping =
  (item: number) =>
  (other: number): number =>
    other < item ? other : other + 1;
