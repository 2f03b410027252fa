// The campaign document as TypeScript sees it, and what follows from one for the records that answer it.
import type { Model } from "../classifier/model.js";
import type { Ratio } from "../exact/rationals.js";
import type { Feature, Numeric } from "../features.js";
import type { Parameters } from "../mechanisms/mechanism.js";

export interface Projection {
  readonly method: string;
  readonly inputs: readonly string[];
  readonly mean: readonly number[];
  readonly scale: readonly number[];
  readonly matrix: readonly (readonly number[])[];
  readonly outputs: readonly Numeric[];
  readonly fitted_on: string;
  readonly fitted_study?: string | null;
  readonly fitted_epsilon?: number | null;
}

/** A model; the edges of its score's bins, where there are two classes; how often it is asked whether it is right, and for its score. */
export interface Evaluation {
  readonly model: Model;
  readonly edges?: readonly number[] | null;
  readonly weights?: readonly number[] | null;
}

/** `count` windows, one after another, each of the `length` (`P7D`, `PT1H`: one unit of ISO 8601), the first `from` then on. */
export interface Windows {
  readonly from: string;
  readonly length: string;
  readonly count: number;
}

/** The host that signs tokens, its RSA key (RFC 9578, 6.5) in base64url, and how many tokens a person gets. */
export interface Issuer {
  readonly name: string;
  readonly key: string;
  /** Another key, for what relays are shown. */
  readonly relay_key?: string | null;
  readonly tokens?: number | null;
}

/**
 * The promise: whoever sees answers only as the relay lets them go, mixed in batches of `devices`, of which the share `honest` at least is
 * what it seems to be, learns (`epsilon`, `delta`) of one device at most.
 */
export interface Crowd {
  readonly epsilon: number;
  readonly delta: number;
  readonly devices: number;
  readonly honest: number;
  /** Why the relay admits answers without a token of a person. */
  readonly without_issuer?: string | null;
  /** Days after its first answer, when a batch that is not full is thrown away. */
  readonly expires?: number | null;
}

/** A key configuration of Oblivious HTTP (RFC 9458, section 3.1) in base64url. */
export interface Gateway {
  readonly key: string;
}

export interface Label {
  readonly name: string;
  readonly classes: readonly string[];
  readonly weight?: number | null;
}

/** What a device needs of a published document; `questions` are its server's, and are checked when it is parsed. */
export interface CampaignDocument {
  readonly version: number;
  readonly title: string;
  readonly purpose?: string | null;
  /** Who answers for it. */
  readonly operator?: string | null;
  /** Where questions and complaints go. */
  readonly contact?: string | null;
  /** The privacy notice, by https. */
  readonly privacy_url?: string | null;
  /** Days after its end until nothing is kept by which an answer could be found. */
  readonly keep_days?: number | null;
  /** Absent where statistics of values are asked for, and no model. */
  readonly label?: Label | null;
  readonly features: readonly Feature[];
  readonly privacy: {
    readonly epsilon: number;
    readonly answers?: string | null;
    readonly discrete?: string | null;
    readonly continuous?: string | null;
    readonly theta?: number | null;
    readonly release_every?: number | null;
    /** Where answers are mixed: what they reveal then, `epsilon` being lost where all others work together. */
    readonly crowd?: Crowd | null;
  };
  readonly projection?: Projection | null;
  readonly asks?: string | null;
  /** What an evaluation round asks about. */
  readonly evaluation?: Evaluation | null;
  readonly study?: string | null;
  readonly opens?: string | null;
  readonly closes?: string | null;
  /** Where it is a series: each device answers once in its life, in a window drawn by lot. */
  readonly windows?: Windows | null;
  /** Where an answer has to show a token: who signs it. */
  readonly issuer?: Issuer | null;
  /** Where uploads are sealed: to whom. */
  readonly gateway?: Gateway | null;
  readonly questions?: readonly unknown[];
}

/** The values that mean one of the declared texts `V`: the text, a number that reads like it, a truth value for 1 and 0. */
export type ValueOf<V extends string> =
  | V
  | (V extends `${infer N extends number}` ? N : never)
  | (V extends "0" | "1" | "true" | "True" | "false" | "False" ? boolean : never);

type Answer<F> = F extends { readonly values: readonly (infer V extends string)[] }
  ? ValueOf<V>
  : number | bigint | boolean | `${number}`;

/** The record that answers a document of this type (`as const`): every feature may be missing. */
export type RecordOf<D extends CampaignDocument> = string extends D["features"][number]["name"]
  ? Readonly<Record<string, unknown>>
  : { readonly [F in D["features"][number] as F["name"]]?: Answer<F> | null };

/** The labels that a document of this type declares; without a label none. */
export type LabelOf<D extends CampaignDocument> = D["label"] extends Label
  ? string extends D["label"]["classes"][number]
    ? unknown
    : ValueOf<D["label"]["classes"][number]>
  : unknown;

/** The label beside a record: to be left out where the document has none, else one that it declares. */
export type Labelled<D extends CampaignDocument> = D["label"] extends Label ? [label: LabelOf<D>] : [label?: unknown];

export interface Question {
  readonly index: number;
  readonly kind: string;
  readonly feature?: string | null;
  readonly other?: string | null;
  readonly group: number;
  readonly encoding: string;
  readonly mechanism: string;
  readonly domain_size: number;
  readonly epsilon: number;
  readonly weight: number;
  readonly parameters: Parameters;
  readonly loss: Ratio;
  /** Bytes of a payload. */
  readonly width: number;
}

/** A verified campaign. */
export interface Campaign<D extends CampaignDocument = CampaignDocument> extends Omit<
  CampaignDocument,
  "questions" | "label"
> {
  /** Of one class, the empty text, where the document has none. */
  readonly label: Label;
  /** SHA-256 of the document's bytes, base64url. */
  readonly id: string;
  readonly document: string;
  /** Where there are windows, when the first one opens, and some days after the last. */
  readonly opens?: string | null;
  readonly closes?: string | null;
  /** The features that questions are about: a projection's inputs are replaced by its outputs. */
  readonly asked: readonly Feature[];
  readonly questions: readonly Question[];
  /** The questions by group: a device answers at most one of each. */
  readonly groups: readonly (readonly Question[])[];
  /** An upper bound of what one device loses, recomputed; and the same as a double, rounded up. */
  readonly loss: Ratio;
  readonly realisedEpsilon: number;
  /** The type of the document, for the compiler alone. */
  readonly typed?: D;
}
