import { perturbDe } from "./de.js";
import type { Perturb } from "./mechanism.js";
import { perturbLaplace, perturbShe } from "./noisy.js";
import { perturbOnebit } from "./onebit.js";
import { perturbSs } from "./ss.js";
import { perturbUnary } from "./unary.js";

/** The perturbation of each mechanism of registry.ts. */
export const PERTURBATIONS: Readonly<Record<string, Perturb>> = {
  de: perturbDe,
  ss: perturbSs,
  oue: perturbUnary,
  sue: perturbUnary,
  the: perturbUnary,
  onebit: perturbOnebit,
  she: perturbShe,
  laplace: perturbLaplace,
};
