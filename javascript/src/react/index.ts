// A hook for React: what an app has to do about a campaign, in one place.
import { useCallback, useEffect, useState } from "react";
import type { DeviceCampaign } from "../device/campaign.js";
import type { Receipt } from "../device/state.js";
import type { Campaign, CampaignDocument, LabelOf, RecordOf } from "../document/types.js";

/** What an app has to do, and what it can. */
export interface Asking<D extends CampaignDocument> {
  /**
   * `"ask"`: show the person `campaign`; `"token"`: the person agreed, and an issuer has to sign; `"contribute"`: there
   * is nothing more to do first; `undefined` until it is known.
   */
  readonly step: "ask" | "token" | "contribute" | "nothing" | undefined;
  /** What is asked, of whom and at which cost, where `step` is `"ask"`. */
  readonly campaign: Campaign<D> | undefined;
  /** What failed last: an `LdpError` has a `code`. */
  readonly problem: unknown;
  /** The person's yes. */
  agree(): Promise<void>;
  /** The person's no; it is remembered. */
  decline(): Promise<void>;
  /** Has the campaign's issuer sign, by the app's own call to it. */
  obtainToken(issue: Parameters<DeviceCampaign["obtainToken"]>[0]): Promise<void>;
  /** Answers, once; undefined where it failed, and `problem` says why. */
  contribute(record: RecordOf<D>, label: LabelOf<D>): Promise<Receipt | undefined>;
}

/**
 * What an app has to do about a campaign; nobody is asked twice. `joined` is what `device.campaign(...)` gives: make it
 * once, outside of components.
 */
export function useCampaign<D extends CampaignDocument>(joined: DeviceCampaign<D>): Asking<D> {
  const [known, setKnown] = useState<Pick<Asking<D>, "step" | "campaign" | "problem">>(UNKNOWN);
  const look = useCallback(
    async <T>(first?: () => Promise<T>): Promise<T | undefined> => {
      try {
        const done = await first?.();
        const step = await joined.nextStep();
        const campaign = step === "ask" ? await joined.fetch() : undefined;
        setKnown({ step, campaign, problem: undefined });
        return done;
      } catch (problem) {
        setKnown((before) => ({ ...before, problem }));
        return undefined;
      }
    },
    [joined],
  );
  useEffect(() => void look(), [look]);
  return {
    ...known,
    agree: () => look(() => joined.grant()),
    decline: async () => void (await look(() => joined.withdraw())),
    obtainToken: (issue) => look(() => joined.obtainToken(issue)),
    contribute: (record, label) => look(() => joined.contribute(record, label)),
  };
}

const UNKNOWN = { step: undefined, campaign: undefined, problem: undefined };
