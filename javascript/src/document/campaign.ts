// A campaign document as a device must read it: strictly, and with its privacy loss recomputed in integers.
import { base64url, utf8 } from "../bytes.js";
import { ensure } from "../errors.js";
import { floatUp, larger, sum, within, type Ratio } from "../exact/rationals.js";
import { sha256 } from "../exact/sha256.js";
import type { Feature } from "../features.js";
import {
  among,
  areDeclared,
  check,
  distinct,
  isAbsent,
  isInstant,
  isList,
  isName,
  isPositive,
  isText,
  like,
  must,
  optional,
  whole,
} from "./checks.js";
import { checkEvaluation } from "./evaluation.js";
import { isGateway } from "./gateway.js";
import { isIssuer } from "./issuer.js";
import { strictJson } from "./json.js";
import { checkProjection } from "./projection.js";
import { readQuestion, MOST_PRODUCTS } from "./questions.js";
import {
  cellsOf,
  isFeature,
  isGaussian,
  isNumber,
  MOST_CLASSES,
  MOST_FEATURES,
  MOST_WEIGHT,
  nameOf,
} from "./schema.js";
import type { Campaign, CampaignDocument, Question } from "./types.js";
import { areWindows, opensAt, WINDOW_GRACE } from "./windows.js";

const LARGEST_DOCUMENT = 4 << 20; // bytes
const MOST_CAMPAIGN_CELLS = 2 ** 18;
const ADDRESS = /^https:\/\/\w[!#-?A-~]{0,191}$/;
const MOST_QUESTIONS = 2 * MOST_FEATURES + 1 + MOST_PRODUCTS;

/** Checks what a document with a crowd promises, and gives what checks whether its questions keep that. */
export type CheckCrowd = (document: CampaignDocument) => (questions: readonly Question[]) => void;

/** Checks all but the questions. Returns the features that questions are about. */
function checkAuthored(document: any, checkCrowd: CheckCrowd | undefined): Feature[] {
  const { label, features, asks, opens, projection, windows } = document ?? {};
  const moments = asks === "moments";
  const score = asks === "score";
  const plain = !moments && !score;
  const k = label?.classes?.length ?? 1;
  let inputs: Feature[] | undefined;
  // In this order: what comes later looks at what came before.
  check(document, {
    version: (version) => version === 1,
    title: isName,
    purpose: optional((text) => isText(text, 2000)),
    operator: optional(isName),
    contact: optional(isName),
    privacy_url: optional(like(ADDRESS)),
    keep_days: optional(whole(1, 36500)),
    label: optional((value) =>
      check(value, {
        name: isName,
        classes: (classes) => areDeclared(classes, MOST_CLASSES),
        weight: optional(whole(0, MOST_WEIGHT)),
      }),
    ),
    features: (list) =>
      isList(list, 1, MOST_FEATURES, isFeature(k)) &&
      (!moments || list.every(isNumber)) &&
      distinct([label, ...list].map(nameOf)),
    privacy: (value) =>
      check(value, {
        epsilon: isPositive,
        answers: optional(among(plain ? "one all" : "one")),
        discrete: optional(among("auto de sue oue she the ss")),
        continuous: optional(among("auto laplace onebit sign")),
        theta: optional((theta) => isPositive(theta) && theta <= 1),
        release_every: moments || windows ? isAbsent : optional(whole(2, 2 ** 40)),
        crowd: optional(() => (ensure(checkCrowd, "crowd-unsupported"), checkCrowd(document))),
      }),
    asks: optional(among(label ? "model moments score" : "statistics")),
    study: plain ? optional(isName) : isName,
    projection: plain && label ? optional((value) => (inputs = checkProjection(value, document))) : isAbsent,
    evaluation: score ? () => checkEvaluation(document) : isAbsent,
    windows: plain ? optional(areWindows) : isAbsent,
    opens: windows ? isAbsent : optional(isInstant),
    closes: windows ? isAbsent : optional((time) => isInstant(time) && !(opens >= time)),
    issuer: optional(isIssuer),
    gateway: optional(isGateway),
    questions: (list) => isList(list, 1, MOST_QUESTIONS),
  });
  const asked: Feature[] = [
    ...features.filter((feature: any) => !inputs?.includes(feature)),
    ...(projection?.outputs ?? []),
  ];
  const values = asked.reduce((sum, feature) => sum + cellsOf(feature) * (1 + +isGaussian(feature)), 1);
  must(values * k * (windows?.count ?? 1) <= MOST_CAMPAIGN_CELLS, "features");
  return asked;
}

/**
 * The campaign of a document's text; `known`, its id where it is known, must be the hash of its bytes. One with a crowd is read with the
 * `checkCrowd` of `ldp-bayes-client/crowd`, and refused without (`crowd-unsupported`). Throws LdpError.
 */
export function parseCampaign<const D extends CampaignDocument>(
  text: string,
  known?: string,
  checkCrowd?: CheckCrowd,
): Campaign<D> {
  const bytes = utf8(text);
  must(bytes.length <= LARGEST_DOCUMENT, "document"); // before the hash, which takes its time
  const id = base64url(sha256(bytes));
  ensure((known ?? id) === id, "wrong-hash");
  const document = strictJson(text);
  const asked = checkAuthored(document, checkCrowd);
  const { windows } = document;
  // Without a label one class, of which every record is.
  const authored = {
    ...document,
    label: document.label ?? { name: "", classes: [""] },
    // A series opens with its first window, and closes some time after its last.
    ...(windows && { opens: windows.from, closes: new Date(opensAt(windows, windows.count) + WINDOW_GRACE).toJSON() }),
    id,
    document: text,
    asked,
  };
  const losses: Record<string, Ratio> = {};
  const questions: Question[] = document.questions.map((one: unknown, index: number) =>
    readQuestion(one, index, authored, losses),
  );
  must(distinct(questions.map(({ kind, group }) => kind + group)), "questions");
  const members: Record<string, Question[]> = {}; // by what is no index of an array, so that they stay in the document's order
  for (const question of questions) (members[`g${question.group}`] ??= []).push(question);
  const groups = Object.values(members);
  const worst = groups.map((group) => group.map((question) => question.loss).reduce(larger));
  const loss = worst.reduce(document.privacy.answers === "all" ? sum : larger);
  ensure(within(loss, document.privacy.epsilon), "loss-above-epsilon");
  if (document.privacy.crowd) checkCrowd!(document)(questions);
  return { ...authored, questions, groups, loss, realisedEpsilon: floatUp(loss) };
}
