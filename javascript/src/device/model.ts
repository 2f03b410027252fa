// The campaign's model on this device: fetched, kept once the person has agreed, ready to classify offline.
import type { Classifier } from "../classifier/classifier.js";
import { Decisions } from "../classifier/decisions.js";
import type { Campaign } from "../document/campaign.js";
import { readModel } from "../document/evaluation.js";
import type { DeviceCampaign } from "./campaign.js";
import type { Install } from "./install.js";
import { get } from "./network.js";
import type { Publisher } from "./signer.js";

/**
 * The model as it stands now, or as it is stored where that cannot be had. Nothing says which one is known here: the server
 * chooses a model's bytes, and what comes back of them would be a name.
 */
export async function newest(
  { storage, fetch, policy }: Install,
  part: DeviceCampaign<any>,
  campaign: Pick<Campaign, "label"> | undefined,
  publisher: Publisher | undefined,
): Promise<Classifier> {
  const key = `model ${part.id} ${publisher?.key ?? ""}`; // what was stored unsigned is not what was signed
  const read = (text: string): Classifier => new Decisions(readModel(text, campaign?.label));
  try {
    const text = await get(fetch, `${part.path}/model`, policy);
    await publisher?.checkModel(text);
    const classifier = read(text);
    if (await part.consented()) await storage.change(key, () => text);
    return classifier;
  } catch (error) {
    const stored = await storage.read(key);
    if (stored === null) throw error;
    return read(stored);
  }
}
