// From a record to perturbed reports: the one place where a person's data meets the coins. The label is looked up first,
// then the question is drawn, and only then is the record read, only where it is asked about.
import { utf8 } from "./bytes.js";
import type { Campaign, CampaignDocument, LabelOf, Question, RecordOf } from "./document/types.js";
import { isObject } from "./document/checks.js";
import { ensure } from "./errors.js";
import { keyedCoins, randomBytes, systemCoins, type Coins } from "./exact/coins.js";
import type { Moment } from "./mechanisms/mechanism.js";
import { PERTURBATIONS } from "./mechanisms/perturbations.js";
import { itemOf } from "./encoding.js";
import { position } from "./values.js";
import { poolsOf, reportId, slot, type Report } from "./wire.js";

const SECRET_BYTES = 32;

/** A report with the item that was perturbed; the item must not leave the device. */
export interface Answer extends Report {
  readonly item: number | Moment;
}

/** Words that are a function of a device's secret, for the draw of a subject about a campaign. */
function wordsFor(secret: Uint8Array, subject: string, about: Uint8Array): Coins {
  ensure(secret?.length === SECRET_BYTES, "invalid-secret");
  return keyedCoins(secret, utf8(subject), about);
}

/** The one window of a series in which the device with this secret answers, each as likely; 0 where there are none. */
export const drawWindow = (campaign: Campaign, secret: Uint8Array): number =>
  wordsFor(secret, "window", utf8(campaign.id)).index(campaign.windows?.count ?? 1);

/** The questions of the device with this secret: the same at every call, whatever failed after the last one. */
export function drawQuestions(campaign: Campaign, secret: Uint8Array): Question[] {
  return poolsOf(campaign).map((questions) => {
    const coins = wordsFor(secret, "question", slot(campaign, questions[0]!.group));
    let ticket = coins.index(questions.reduce((sum, question) => sum + question.weight, 0));
    return questions.find((question) => (ticket -= question.weight) < 0)!;
  });
}

/**
 * The reports of one device, which together satisfy the campaign's epsilon-LDP: one, or with `answers: "all"` one of every
 * group. Missing, undeclared and unreadable values are answered as the campaign says of a missing one; `problems` finds
 * them. Throws LdpError `undeclared-label`, `not-a-record` or `invalid-secret`; nothing was then drawn or read.
 */
export function perturb<D extends CampaignDocument>(
  campaign: Campaign<D>,
  record: RecordOf<D>,
  label?: LabelOf<D>,
  secret: Uint8Array = randomBytes(SECRET_BYTES),
  coins: Coins = systemCoins(),
): Answer[] {
  const { classes, name } = campaign.label;
  const classIndex = position(label ?? "", classes);
  ensure(classIndex >= 0, "undeclared-label", `${name} must be one of ${classes}`);
  ensure(isObject(record), "not-a-record");
  const first = drawWindow(campaign, secret) * campaign.questions.length;
  return drawQuestions(campaign, secret).map((question) => {
    const item = itemOf(campaign, question, record, classIndex, coins);
    const payload = PERTURBATIONS[question.mechanism]!(question.parameters, question.domain_size, item, coins);
    return { question: first + question.index, item, id: reportId(secret, campaign, question.group), payload };
  });
}
