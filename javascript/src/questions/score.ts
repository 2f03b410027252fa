import type { Kind } from "./kind.js";

/** Whether a candidate model is right for the record; a missing value takes no part, as whenever the model is used. */
export const score: Kind = {
  encodings: "index",
  cells: () => 2,
  item: ({ campaign, question, record }, label) =>
    Number(campaign.verdicts![question.group]!(record) === campaign.label.classes[label]),
};
