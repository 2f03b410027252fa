// What is asked of two values and two classes in place of their pair.
import { discrete } from "./discrete.js";

const oneBit = (size: number, k: number): number => (size === 2 && k === 2 ? 2 : 0);

/** Whether just one of both indices is 1. */
export const xor = discrete(oneBit, (index, label) => index ^ label);

/** The value alone. */
export const marginal = discrete(oneBit, (index) => index);
