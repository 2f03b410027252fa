import type { LdpError } from "../errors.js";
import type { Install } from "./install.js";

/** Who has to have signed a campaign and its model; `publisher/` has the one there is. */
export type Signer = (install: Install, url: string, id: string) => Publisher;

export interface Publisher {
  readonly key: string;
  /** Has a directory that holds now and names the campaign, or the newest there is by a moment. Throws LdpError. */
  refresh(until: number): Promise<void>;
  /** Why the campaign is not one of the publisher's, null where it is; nothing is fetched. */
  refusal(): Promise<LdpError | null>;
  /** Throws LdpError `invalid-model` for one that is not the campaign's, and what `refresh` throws. */
  checkModel(text: string, until: number): Promise<void>;
  /** Keeps what was seen: an older directory is refused from then on, at every visit. */
  keep(): Promise<void>;
}
