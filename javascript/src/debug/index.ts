// For debug builds: an element that shows what a device knows. It shows nothing of a record, and sends nothing of its own but what
// `nextStep` asks.
import type { DeviceCampaign } from "../device/campaign.js";
import type { Device } from "../device/device.js";

/** The element; it shows itself anew when it comes into the page, and by `refresh`. */
export interface DebugElement extends HTMLElement {
  device: Device | undefined;
  campaign: DeviceCampaign<any> | undefined;
  /** Reads everything once more. Never throws: what fails is shown. */
  refresh(): Promise<void>;
}

const moment = (time: number | null): string => (time === null ? "" : ` at ${new Date(time).toLocaleString()}`);

/**
 * Defines the custom element of this name: `document.querySelector("ldp-bayes-debug").device = device`, and `.campaign`. It shows
 * the next step with its reason, the queue, what was said last, and the ledger. Defined once, however often it is called.
 */
export function defineDebug(name = "ldp-bayes-debug"): void {
  if (customElements.get(name)) return;
  customElements.define(
    name,
    class extends HTMLElement implements DebugElement {
      device: Device | undefined;
      campaign: DeviceCampaign<any> | undefined;

      connectedCallback(): void {
        void this.refresh();
      }

      async refresh(): Promise<void> {
        const { device, campaign } = this;
        const told: [string, string][] = [];
        const tell = async (title: string, read: () => Promise<string | undefined>): Promise<void> => {
          try {
            told.push([title, (await read()) ?? "none yet"]);
          } catch (error: any) {
            told.push([title, `cannot be read: ${error?.code ?? error}`]);
          }
        };
        await tell("Next step", async () => {
          const next = await campaign?.nextStep();
          return next && `${next.step}${next.reason ? `, because ${next.reason}` : ""}`;
        });
        await tell("Queue", async () => {
          const status = await campaign?.status();
          if (!status) return undefined;
          const { queued, sent, retries, nextTry, fate, problem } = status;
          const last = problem ? `; last problem: ${problem}` : "";
          return `${queued} wait${moment(nextTry)}, ${sent} arrived, ${retries} tries failed; fate: ${fate ?? "none"}${last}`;
        });
        await tell("Last answer", async () => {
          const last = (await device?.sent())?.at(-1);
          return (
            last && `${last.asked}: ${last.said}; sent${moment(last.at)} to ${last.url}; reply: ${last.reply ?? "none"}`
          );
        });
        await tell("Ledger", async () => {
          const ledger = await device?.ledger();
          return ledger && `${ledger}\n${ledger.note}`;
        });
        const list = document.createElement("dl");
        for (const [title, text] of told)
          for (const [tag, content] of [
            ["dt", title],
            ["dd", text],
          ] as const) {
            const part = document.createElement(tag);
            part.textContent = content;
            part.style.whiteSpace = "pre-wrap";
            list.append(part);
          }
        const again = document.createElement("button");
        again.textContent = "Read again";
        again.onclick = () => void this.refresh();
        this.replaceChildren(list, again);
      }
    },
  );
}
