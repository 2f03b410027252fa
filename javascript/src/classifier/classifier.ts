import { Decisions } from "./decisions.js";
import { parseModel } from "./model.js";

/** Classifies records on the device with a published model. */
export class Classifier extends Decisions {
  /** Throws LdpError `invalid-model`. */
  static fromJson(text: string): Classifier {
    return new Classifier(parseModel(text));
  }
}
