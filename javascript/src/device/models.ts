import type { Classifier } from "../classifier/classifier.js";
import { Decisions } from "../classifier/decisions.js";
import { readModel } from "../document/evaluation.js";
import type { Campaign } from "../document/types.js";
import type { Install } from "./install.js";
import { get, inTime, type Waiting } from "./network.js";
import type { Publisher } from "./signer.js";

/** The models of one campaign, as they are known here. */
export class Models {
  private newestText: string | undefined; // of this life
  private renewing: Promise<unknown> | undefined;

  private readonly key: string;

  /** `label`: the campaign's, where it is known; `mayKeep`: whether a model is stored. */
  constructor(
    private readonly install: Install,
    private readonly path: string,
    id: string,
    private readonly publisher: Publisher | undefined,
    private readonly label: () => Promise<Campaign<any>["label"] | undefined>,
    private readonly mayKeep: () => Promise<boolean>,
  ) {
    this.key = `model ${id} ${publisher?.key ?? ""}`; // what was stored unsigned is not what was signed
  }

  /** What is known, at once, and the newest is fetched for the next call; else as it can be had. */
  async classifier(waiting: Waiting): Promise<Classifier> {
    const { storage, policy } = this.install;
    const stored = this.newestText ?? (await storage.read(this.key).catch(() => null));
    if (stored !== null) {
      try {
        const classifier = await this.classify(stored);
        const until = Date.now() + policy.requestTimeout;
        this.renewing ??= this.newest(until)
          .catch(() => {})
          .finally(() => (this.renewing = undefined));
        return classifier;
      } catch {
        // Damaged, or of another label: it is fetched again.
      }
    }
    return inTime(waiting, (until) => this.newest(until));
  }

  /** The model as it stands now, kept for later calls. */
  private async newest(until: number): Promise<Classifier> {
    const { storage, fetch, policy } = this.install;
    const text = await get(fetch, `${this.path}/model`, policy, until);
    await this.publisher?.checkModel(text, until);
    const classifier = await this.classify(text);
    this.newestText = text;
    try {
      if (await this.mayKeep()) await storage.change(this.key, () => text);
    } catch {
      // It serves as long as this lives.
    }
    return classifier;
  }

  private async classify(text: string): Promise<Classifier> {
    return new Decisions(readModel(text, await this.label()));
  }
}
