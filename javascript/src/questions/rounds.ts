// Every kind of question: of campaigns that learn a model, of those that fit a projection to moments, and of those that score
// candidate models.
import { scaled, type Kind } from "./kind.js";
import { centredSquare, moment, scaledFeature } from "./moments.js";
import { signs, triple } from "./joint.js";
import { label } from "./label.js";
import { KINDS } from "./registry.js";
import { score } from "./score.js";
import { marginal, xor } from "./xor.js";

/** A feature's value, with bins or without. */
const value = moment((feature, k) => (feature ? k : 0), scaledFeature);

/** The product of two features, or the square of one. */
const product = moment(
  () => 1,
  (asked) => {
    const { feature, other } = asked.question;
    const t = scaledFeature(asked);
    return other === feature ? centredSquare(t) : t * scaled(asked, other!);
  },
);

/** The kinds of each round. */
export const ROUNDS: Readonly<Record<string, Readonly<Record<string, Kind>>>> = {
  model: { ...KINDS, xor, marginal, signs, triple },
  moments: { label, value, product },
  score: { score },
};
