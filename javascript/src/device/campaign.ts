import type { Classifier } from "../classifier/classifier.js";
import { parseCampaign } from "../document/campaign.js";
import type { Campaign, CampaignDocument, Labelled, RecordOf } from "../document/types.js";
import { ensure, LdpError } from "../errors.js";
import { within } from "../exact/rationals.js";
import { codeOf } from "../log.js";
import type { Preview } from "../preview.js";
import type { Explanation } from "../words.js";
import { changeState, landed, stateOf, type Install } from "./install.js";
import type { OutOfWindow } from "./contribution.js";
import { answering } from "./answering.js";
import { crowds, unsealable, words } from "./later.js";
import { get, inTime, publicBase, type Waiting } from "./network.js";
import { CLOCK_TOLERANCE, type Caps } from "./policy.js";
import type { Models } from "./models.js";
import type { Publisher, Signer } from "./signer.js";
import { Standing } from "./standing.js";
import {
  ARRIVED,
  fits,
  given,
  NOTHING,
  queued,
  receiptsOf,
  type Entry,
  type Fate,
  type Receipt,
  type State,
} from "./state.js";

/** What happened so far in one campaign; `nextTry` is in milliseconds since 1970. */
export interface Status {
  /** Whether the person agrees; null until somebody decided. */
  readonly consent: boolean | null;
  readonly fate: Fate | null;
  readonly queued: number;
  /** Reports that the server says it has. */
  readonly sent: number;
  readonly retries: number;
  /** Reports that left the queue otherwise, by reason. */
  readonly dropped: Readonly<Record<string, number>>;
  readonly nextTry: number | null;
  /** The code of the last failure. */
  readonly problem: string | null;
}

/** What a withdrawal could do: reports deleted, how many of them may arrive all the same, and the loss given back. */
export interface Withdrawal {
  readonly deleted: number;
  readonly onItsWay: number;
  readonly refunded: number;
}

/**
 * An app's next step in one campaign, and why. `reason` is null where the step needs none. To `"ask"` it is `other-recipient`
 * where the person has agreed to another address. For `"nothing"` it is `answered`, `declined`, or the code of what stands
 * against answering: of a refusal, of the storage, of the network, of a document that is none; `unexpected` for an error that is
 * none of this package's.
 */
export interface NextStep {
  readonly step: "ask" | "token" | "contribute" | "nothing";
  readonly reason: string | null;
}

/** One campaign, as one device sees it; made by `Device.campaign`. */
export class DeviceCampaign<D extends CampaignDocument = CampaignDocument> {
  private document: Campaign<D> | undefined;
  private problem: string | null = null; // why the next step could not be told
  private models: Models | undefined;
  private crowd: typeof import("../later/crowd.js") | undefined; // where the campaign has one
  private readonly publisher: Publisher | undefined;
  private readonly standing: Standing;

  constructor(
    private readonly install: Install,
    private readonly url: string,
    readonly id: string,
    private readonly caps: Caps,
    signer?: Signer,
  ) {
    this.publisher = signer?.(install, url, id);
    this.standing = new Standing(install, id);
  }

  /** The verified campaign: at hand, or fetched. Nothing is stored before `grant`. */
  fetch(waiting: Waiting = {}): Promise<Campaign<D>> {
    return inTime(waiting, (until) => this.fetched(until));
  }

  private async fetched(until: number): Promise<Campaign<D>> {
    await this.publisher?.refresh(until);
    return (await this.atHand()) ?? this.load(await get(this.install.fetch, this.path, this.install.policy, until));
  }

  /** Takes the document from the app instead of fetching it; verified the same way. */
  async load(document: string): Promise<Campaign<D>> {
    for (;;)
      try {
        return (this.document = parseCampaign<D>(document, this.id, this.crowd?.checkCrowd));
      } catch (error) {
        if (this.crowd || codeOf(error) !== "crowd-unsupported") throw error;
        this.crowd = await crowds();
      }
  }

  /**
   * What an app has to do now, and why; call it at every start. It never throws. `"ask"`: show the person what `fetch` gives,
   * then `decide` by what they say; a yes and a no are both remembered. `"token"`, in a campaign with an issuer: the person has
   * agreed; call `obtainToken`. `"contribute"`: the person has agreed, and no answer is given yet; in a campaign with windows,
   * this device's is open. `"nothing"`: answered, declined, switched off, refused (`refusal` says when this device's window
   * opens), or it cannot be told, or not be kept, at the moment: call it again at the next start.
   */
  nextStep(waiting: Waiting = {}): Promise<NextStep> {
    return this.stepAfter("next-step", async () => {}, waiting);
  }

  /**
   * Takes the person's answer to `"ask"`, by `grant` or `withdraw`; the next step, which is what to do now. Never throws: where
   * the answer could not be kept, the reason says why, and the person is asked again.
   */
  decide(agreed: boolean, waiting: Waiting = {}): Promise<NextStep> {
    return this.stepAfter("decide", (until) => (agreed ? this.granted(until) : this.withdraw()), waiting);
  }

  private async stepAfter(
    name: string,
    first: (until: number) => Promise<unknown>,
    waiting: Waiting,
  ): Promise<NextStep> {
    const work = async (until: number): Promise<NextStep> => {
      await first(until);
      return this.told(until);
    };
    try {
      const told = await this.telling(
        name,
        () => inTime(waiting, work),
        ({ reason, step }) => reason ?? step,
      );
      this.problem = null;
      return told;
    } catch (error) {
      // Whatever it is, it must not stop the app at every start.
      return { step: "nothing", reason: (this.problem = codeOf(error)) };
    }
  }

  /** Tells the app's log how a call ends. */
  private async telling<T>(
    name: string,
    work: () => Promise<T>,
    codeFor: (done: T) => string | null = () => null,
  ): Promise<T> {
    const { tell } = this.install;
    try {
      const done = await work();
      tell(name, this.id, codeFor(done));
      return done;
    } catch (error) {
      tell(name, this.id, codeOf(error), error);
      throw error;
    }
  }

  private async told(until: number): Promise<NextStep> {
    const entry = await this.entry();
    const declined = entry ? !given(entry) : this.install.revoked.has(this.id);
    const reason = (entry?.receipt ? "answered" : declined ? "declined" : (await this.refusing(until))?.code) ?? null;
    if (reason && !AGREEABLE.includes(reason)) return { step: "nothing", reason };
    await this.install.storage.check?.();
    if (!entry) return { step: "ask", reason: null };
    if (reason === "other-recipient") return { step: "ask", reason };
    await answering(this.install); // now, and not when there is a record: the time of a request would tell the time of the event
    if (this.document?.issuer && !entry.token) return { step: "token", reason: null };
    return { step: reason ? "nothing" : "contribute", reason };
  }

  /**
   * What this campaign would ask of a record, and what would be said, before anything is: of every question the truth and the
   * probability of each answer; and what is wrong with the record. For tests, debug builds and the curious; nothing is drawn, stored or
   * sent. Throws LdpError `not-fetched`, and nothing for what the record holds.
   */
  async preview(record: unknown, label?: unknown): Promise<Preview> {
    return (await words()).preview(await this.needed(), record, label);
  }

  /**
   * What the noise means, for the person, and what happens, for a privacy policy, in this campaign's numbers. Throws LdpError
   * `not-fetched`.
   */
  async explained(): Promise<Explanation> {
    return (await words()).explained(await this.needed(), this.url, this.crowd?.inACrowd);
  }

  /** Why this device would refuse the campaign, null where it would answer: to know before anybody is asked. */
  refusal(waiting: Waiting = {}): Promise<LdpError | null> {
    return inTime(waiting, (until) => this.refusing(until));
  }

  private async refusing(until: number): Promise<LdpError | null> {
    const campaign = await this.fetched(until);
    const { install } = this;
    // Read once: where another tab answers meanwhile, its receipt would be taken for an earlier campaign's.
    const state = await stateOf(install);
    const entry = state.campaigns[this.id];
    if (entry?.receipt) return null;
    if (state.enabled && (install.relay || !campaign.gateway)) await this.standing.hear(this.path, given(entry), until);
    // A device that has a secret knows its window.
    const outOfWindow = campaign.windows && state.secret ? (await answering(this.install)).outOfWindow : () => null;
    return (
      (await this.barred(campaign)) ??
      (await install.storage.refusal?.(install.key)) ??
      this.refused(campaign, state, outOfWindow)
    );
  }

  /** Why no device of this app answers the campaign. */
  private async barred({ issuer, gateway }: Campaign<D>): Promise<LdpError | null> {
    // Whoever knows an account's bytes knows whose a token is; what an issuer signs takes SHA-384.
    const code = issuer && (this.install.identity ? "bad-identity" : !globalThis.crypto?.subtle && "no-signatures");
    return code
      ? new LdpError(code)
      : ((await this.publisher?.refusal()) ?? unsealable(gateway?.key, this.install.relay, this.url));
  }

  /**
   * The campaign's model: at once as it was kept, and the newest is fetched for the next call; else as it can be had. It is stored
   * once the person has agreed. Nothing says which one is known here: the server chooses a model's bytes, and what comes back
   * of them would be a name.
   */
  classifier(waiting: Waiting = {}): Promise<Classifier> {
    return this.telling("classifier", () => this.known(waiting));
  }

  private async known(waiting: Waiting): Promise<Classifier> {
    const { Models } = await answering(this.install);
    this.models ??= new Models(
      this.install,
      this.path,
      this.id,
      this.publisher,
      async () => (await this.atHand().catch(() => undefined))?.label,
      () => this.consented(),
    );
    return this.models.classifier(waiting);
  }

  /** The person has agreed to this campaign, and to sending the answer to this address. Throws what `refusal` returns. */
  grant(waiting: Waiting = {}): Promise<void> {
    return this.telling("grant", () => inTime(waiting, (until) => this.granted(until)));
  }

  private async granted(until: number): Promise<void> {
    const campaign = await this.fetched(until);
    const refused = await this.refusing(until);
    if (refused && !AGREEABLE.includes(refused.code)) throw refused;
    const { agree } = await answering(this.install);
    ensure(Date.now() < until, "timeout"); // nothing is stored for who was told that it was too late
    await this.install.storage.change(`campaign ${this.id}`, () => campaign.document);
    await this.publisher?.keep();
    await this.standing.keep();
    await agree(this.install, campaign, this.url);
  }

  /**
   * Has the campaign's issuer sign this device's token, which its answer shows, and where answers are sealed and it
   * signs these the one for relays; once the person has agreed, and best long before there is a record. The issuer sees who asks, and neither a token
   * nor the answer.
   *
   * `issue` is the app's own call: it sends the bytes that it is given (`application/private-token-request`) to the app's
   * backend, where the person is known, and resolves to the bytes that come back, once for each token; what it throws comes out here. Asking
   * again sends the same bytes, which the issuer counts once; where there is a token, nothing is asked. Throws LdpError,
   * and nothing was stored then: `not-fetched`, `consent-missing`, `no-issuer`, `no-signatures` without WebCrypto;
   * `wrong-token` where the answer is no signature by the key in the campaign's document.
   */
  obtainToken(issue: (request: Uint8Array) => Promise<Uint8Array | ArrayBuffer>): Promise<void> {
    return this.telling("obtain-token", async () => {
      const campaign = await this.needed();
      return (await answering(this.install)).obtain(this.install, campaign, issue);
    });
  }

  /**
   * The person no longer agrees, or never did: what is unsent is deleted. Where nothing had begun to leave, its loss is
   * given back and the person may agree again. What has begun is waited for, a little. Where it could not be stored it throws, and holds
   * in this process even then; withdraw again.
   */
  withdraw(): Promise<Withdrawal> {
    return this.telling("withdraw", () => this.withdrawn());
  }

  private async withdrawn(): Promise<Withdrawal> {
    const { install } = this;
    let deleted = 0;
    let refunded = 0;
    let begun = false;
    const now = install.now();
    install.revoked.set(this.id, now);
    await changeState(install, ({ campaigns }) => {
      const entry = (campaigns[this.id] ??= { ...NOTHING, consent: { ...UNASKED, url: this.url } });
      const { receipt, consent } = entry;
      consent.withdrawnAt = now;
      deleted = queued(entry).length;
      entry.reports = entry.reports.filter(({ at }) => at !== null);
      if (!receipt || !deleted) return;
      begun = receipt.fate !== "waiting";
      if (begun) receipt.fate = "deleted";
      else {
        refunded = receipt.epsilon;
        entry.receipt = undefined;
      }
    });
    install.revoked.delete(this.id);
    await landed(install);
    const arrived = begun && (await this.receipt())?.fate === ARRIVED;
    return { deleted, onItsWay: begun && !arrived ? deleted : 0, refunded };
  }

  /** Whether the person agrees as things stand; false where the storage cannot tell. */
  async consented(): Promise<boolean> {
    return (await this.status()).consent === true;
  }

  /**
   * Answers the campaign, once: a second call returns the first receipt, whatever the record now says. The ledger's debit,
   * the answer and its place in the queue are on disk before this returns and before anything is sent; the network is not
   * used, where `nextStep` was asked before and has loaded what seals. Throws LdpError, and nothing was then spent:
   * `consent-missing`, `not-fetched`, `token-missing`, `undeclared-label`, `not-a-record`, what `refusal` returns, and what
   * the storage throws.
   */
  contribute(record: RecordOf<D>, ...label: Labelled<D>): Promise<Receipt> {
    return this.telling("contribute", () => this.contributed(record, ...label));
  }

  private async contributed(record: RecordOf<D>, label?: unknown): Promise<Receipt> {
    const { install } = this;
    const known = this.answered(await stateOf(install));
    if (known) return known;
    const campaign = await this.needed();
    const { answer, outOfWindow } = await answering(this.install);
    const barred = await this.barred(campaign);
    if (barred) throw barred;
    let receipt: Receipt | undefined;
    await changeState(install, (state) => {
      receipt = this.answered(state);
      if (receipt) return;
      const refused = this.refused(campaign, state, outOfWindow);
      if (refused) throw refused;
      receipt = answer(install, campaign, state, this.url, record, label);
    });
    install.wake?.();
    return receipt!;
  }

  /** What this device has contributed. */
  async receipt(): Promise<Receipt | null> {
    return (await this.entry())?.receipt ?? null;
  }

  /** What happened so far. Never throws: a storage that fails is the `problem`. */
  async status(): Promise<Status> {
    let failure: string | null = null;
    const entry = await this.entry().catch((error) => {
      failure = codeOf(error);
      return undefined;
    });
    const { receipt, reports, retries, due, problem } = entry ?? NOTHING;
    const waiting = entry ? queued(entry).length : 0;
    const dropped: Record<string, number> = {};
    let sent = 0;
    for (const { reply } of reports) {
      if (reply === ARRIVED) sent++;
      else if (reply) dropped[reply] = (dropped[reply] ?? 0) + 1;
    }
    return {
      consent: entry ? given(entry) : null,
      fate: receipt?.fate ?? null,
      queued: waiting,
      sent,
      retries,
      dropped,
      nextTry: waiting ? due : null,
      problem: failure ?? problem ?? this.problem,
    };
  }

  /** Where the campaign is fetched. */
  get path(): string {
    return `${publicBase(this.url, this.install.relay)}/v1/campaigns/${this.id}`;
  }

  private async entry(): Promise<Entry | undefined> {
    return (await stateOf(this.install)).campaigns[this.id];
  }

  private async atHand(): Promise<Campaign<D> | undefined> {
    const stored = this.document ? null : await this.install.storage.read(`campaign ${this.id}`);
    try {
      if (stored !== null) await this.load(stored);
    } catch {
      // Damaged: it is fetched again.
    }
    return this.document;
  }

  private async needed(): Promise<Campaign<D>> {
    const campaign = await this.atHand();
    ensure(campaign, "not-fetched");
    return campaign;
  }

  /** The receipt of an answer given before. */
  private answered({ campaigns }: State): Receipt | undefined {
    const entry = campaigns[this.id];
    ensure(given(entry), "consent-missing");
    return entry!.receipt;
  }

  private refused(campaign: Campaign<D>, state: State, outOfWindow: OutOfWindow): LdpError | null {
    const code = this.barredBy(campaign, state);
    const own = code
      ? new LdpError(code, this.crowd?.CAPPED[code])
      : outOfWindow(campaign, state.secret, this.install.now());
    // Answering asks nobody: the time of a request would tell the time of the event.
    return own && !AGREEABLE.includes(own.code) ? own : (this.standing.refusal() ?? own);
  }

  /** The code of what this device, or what it has answered before, holds against an answer. */
  private barredBy(campaign: Campaign<D>, state: State): string | null {
    const { opens, closes, study, loss } = campaign;
    const { install, caps, crowd } = this;
    const entry = state.campaigns[this.id];
    const receipts = receiptsOf(state);
    if (!state.enabled) return "switched-off";
    if (given(entry) && entry!.consent.url !== this.url) return "other-recipient";
    if (opens && install.now() + CLOCK_TOLERANCE < Date.parse(opens)) return "campaign-not-open";
    if (closes && install.now() - CLOCK_TOLERANCE > Date.parse(closes)) return "campaign-closed";
    if (!crowd && !within(loss, caps.maxEpsilon)) return "loss-above-cap";
    const capped = crowd?.capped(campaign, caps);
    if (capped) return capped;
    if (!fits(receipts, loss, install.maxTotalEpsilon)) return "total-above-cap";
    return study && receipts.some((receipt) => receipt.study === study) ? "study-answered" : null;
  }
}

/** Why a device does not answer now, and a person may agree all the same. */
const AGREEABLE = ["other-recipient", "window-not-open"];

/** The consent of who was asked for none, but for whom it would be to. */
const UNASKED = { title: "", purpose: "", epsilon: 0, grantedAt: null, withdrawnAt: null };
