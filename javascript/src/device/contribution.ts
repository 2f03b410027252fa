// One answer of a device, loaded where somebody has agreed.
import { hex, unhex } from "../bytes.js";
import type { Campaign } from "../document/types.js";
import { opensAt } from "../document/windows.js";
import { ensure, LdpError } from "../errors.js";
import { drawWindow, perturb } from "../perturb.js";
import { uploadLength } from "../wire.js";
import { changeState, stateOf, type Install } from "./install.js";
import { tokens } from "./later.js";
import { CLOSING_GRACE } from "./policy.js";
import { given, NOTHING, type Receipt, type State } from "./state.js";

/** Stores that the person agreed to a campaign, and to sending the answer to `url`. */
export async function agree(
  install: Install,
  { id, title, purpose, realisedEpsilon: epsilon, gateway }: Campaign<any>,
  url: string,
): Promise<void> {
  await changeState(install, ({ campaigns }) => {
    const entry = campaigns[id];
    if (given(entry) && entry!.consent.url === url) return;
    campaigns[id] = {
      ...NOTHING,
      ...entry,
      consent: {
        url,
        title,
        purpose: purpose ?? "",
        epsilon,
        grantedAt: install.now(),
        withdrawnAt: null,
        ...(gateway && { gateway: gateway.key }),
      },
    };
  });
  install.revoked.delete(id);
}

/** Draws and randomises the answer, and puts it into the campaign's entry with its receipt. */
export function answer(
  install: Install,
  campaign: Campaign<any>,
  state: State,
  url: string,
  record: any,
  label: any,
): Receipt {
  const entry = state.campaigns[campaign.id]!;
  ensure(!campaign.issuer || entry.token, "token-missing");
  const secret = unhex(state.secret);
  const reports = perturb(campaign, record, label, secret);
  const { title, study, realisedEpsilon: epsilon, closes, windows, privacy } = campaign;
  const own = drawWindow(campaign, secret);
  const at = install.now();
  const receipt: Receipt = {
    campaignId: campaign.id,
    title,
    study: study ?? null,
    epsilon,
    questions: reports.map(({ question }) => question),
    at,
    url,
    fate: "waiting",
    ...(windows && { window: `window ${own + 1} of ${windows.count}` }),
    ...(privacy.crowd && { crowdEpsilon: privacy.crowd.epsilon, crowdDelta: privacy.crowd.delta }),
  };
  const ends = windows ? opensAt(windows, own + 1) : Date.parse(closes!);
  Object.assign(entry, {
    receipt,
    reports: reports.map(({ question, id, payload }) => ({
      id: hex(id),
      question,
      payload: hex(payload),
      at: null,
      reply: null,
    })),
    expires: Math.min(at + install.policy.reportAge, (ends || Infinity) + CLOSING_GRACE),
    length: uploadLength(campaign),
    due: null,
  });
  return receipt;
}

/** Has the campaign's issuer sign this device's token, and the one for relays where it signs these, and keeps them. */
export async function obtain(
  install: Install,
  campaign: Campaign<any>,
  issue: (request: Uint8Array) => Promise<Uint8Array | ArrayBuffer>,
): Promise<void> {
  const { id, issuer, gateway } = campaign;
  const { secret, campaigns } = await stateOf(install);
  ensure(given(campaigns[id]), "consent-missing");
  ensure(issuer, "no-issuer");
  ensure(globalThis.crypto?.subtle, "no-signatures");
  if (campaigns[id]!.token) return;
  const { tokenRequest } = await tokens();
  let token = "";
  for (const forRelay of gateway && issuer.relay_key ? ([undefined, true] as const) : [undefined]) {
    const asked = await tokenRequest(campaign, unhex(secret), forRelay);
    const one = asked?.finish(await issue(asked.request));
    ensure(one, "wrong-token");
    token += one;
  }
  let stored = false;
  await changeState(
    install,
    (state) => {
      const entry = state.campaigns[id];
      stored = given(entry) && state.secret === secret;
      if (stored) entry!.token = token;
    },
    false,
  );
  ensure(stored, "consent-missing"); // withdrawn or erased meanwhile
}

/** Why this device does not answer a series now; its window is drawn from its secret, once it has one. */
export function outOfWindow(campaign: Campaign<any>, secret: string, now: number): LdpError | null {
  const { windows } = campaign;
  if (!windows) return null;
  const own = drawWindow(campaign, unhex(secret));
  const [opens, ends] = [opensAt(windows, own), opensAt(windows, own + 1)];
  if (opens <= now && now < ends) return null;
  const [from, to] = [opens, ends].map((time) => new Date(time).toJSON().slice(0, 16).replace("T", " "));
  const told = `in window ${own + 1} of ${windows.count}, from ${from} to ${to} UTC; `;
  return now < opens
    ? new LdpError("window-not-open", `this device answers ${told}come again then`)
    : new LdpError("window-over", `this device was to answer ${told}it answers in no other`);
}

export type OutOfWindow = typeof outOfWindow;
