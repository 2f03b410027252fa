// A hook for React: what an app has to do about a campaign, in one place.
import { useCallback, useEffect, useState } from "react";
import type { DeviceCampaign } from "../device/campaign.js";
import type { Receipt } from "../device/state.js";
import type { Campaign, CampaignDocument, Labelled, RecordOf } from "../document/types.js";

/** What an app has to do, and what it can. */
export interface Asking<D extends CampaignDocument> {
  /**
   * `"ask"`: show the person `campaign`; `"token"`: the person agreed, and an issuer has to sign; `"contribute"`: there
   * is nothing more to do first; `undefined` until it is known.
   */
  readonly step: "ask" | "token" | "contribute" | "nothing" | undefined;
  /** Why, where the step alone does not say it: a code, such as `answered` or `unreachable`. */
  readonly reason: string | null;
  /** What is asked, of whom and at which cost, where `step` is `"ask"`. */
  readonly campaign: Campaign<D> | undefined;
  /** What a call threw last: an `LdpError` has a `code`. */
  readonly problem: unknown;
  /** The person's yes. */
  agree(): Promise<void>;
  /** The person's no; it is remembered. */
  decline(): Promise<void>;
  /** Has the campaign's issuer sign, by the app's own call to it. */
  obtainToken(issue: Parameters<DeviceCampaign["obtainToken"]>[0]): Promise<void>;
  /** Answers, once; undefined where it failed, and `problem` says why. */
  contribute(record: RecordOf<D>, ...label: Labelled<D>): Promise<Receipt | undefined>;
}

/**
 * What an app has to do about a campaign; nobody is asked twice. `joined` is what `device.campaign(...)` gives: make it
 * once, outside of components.
 */
export function useCampaign<D extends CampaignDocument>(joined: DeviceCampaign<D>): Asking<D> {
  const [known, setKnown] = useState<Pick<Asking<D>, "step" | "reason" | "campaign" | "problem">>(UNKNOWN);
  const look = useCallback(
    async <T>(first?: () => Promise<T>, next = () => joined.nextStep()): Promise<T | undefined> => {
      try {
        const done = await first?.();
        const { step, reason } = await next();
        const campaign = step === "ask" ? await joined.fetch() : undefined;
        setKnown({ step, reason, campaign, problem: undefined });
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
    agree: () => look(undefined, () => joined.decide(true)),
    decline: () => look(undefined, () => joined.decide(false)),
    obtainToken: (issue) => look(() => joined.obtainToken(issue)),
    contribute: (...given) => look(() => joined.contribute(...given)),
  };
}

const UNKNOWN = { step: undefined, reason: null, campaign: undefined, problem: undefined };
