import type { Kind } from "./kind.js";

/** The class alone. */
export const label: Kind = {
  encodings: "index",
  cells: (feature, k) => (feature ? 0 : k),
  item: (_, label) => label,
};
