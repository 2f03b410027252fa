import { verify, type Campaign } from "./campaign.js";
import * as rare from "./rare.js";
import type { CampaignDocument } from "./types.js";

/** The campaign of a document's text; `id`, where it is known, must be the hash of its bytes. Throws LdpError. */
export const parseCampaign = <const D extends CampaignDocument>(text: string, id?: string): Campaign<D> =>
  verify(text, id, rare);
