import { isGaussian, sizeOf } from "../document/schema.js";
import { valueIndex, type Discrete } from "../values.js";
import { featureOf, valueOf, type Kind } from "./kind.js";

/** A discrete feature's value with the class: value * k + class. */
export const pair: Kind = {
  cells: (encoding, feature, k, moments) =>
    feature && !moments && !isGaussian(feature) && encoding === "index" ? sizeOf(feature) * k : undefined,
  item(asked, label) {
    const { campaign, question, coins } = asked;
    const feature = featureOf(campaign, question.feature);
    const index = valueIndex(feature as Discrete, valueOf(asked, feature.name));
    return (index >= 0 ? index : coins.index(sizeOf(feature))) * campaign.label.classes.length + label;
  },
};
