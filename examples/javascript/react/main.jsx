// A card that asks once and answers once; it is gone after a yes and after a no. The service worker sends.
import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { useCampaign } from "ldp-bayes-client/react";
import { device } from "./device.js";

const { url, campaign } = Object.fromEntries(
  new URLSearchParams(location.search),
);
const joined = device.campaign(url, campaign, { maxEpsilon: 2 });

/** What the app knows of the person; it stays here. */
const known = { record: { age: "old", hours: 30 }, label: "yes" };

async function send() {
  const { sync } = await navigator.serviceWorker
    .register("worker.js", { type: "module" })
    .then(() => navigator.serviceWorker.ready);
  if (sync)
    await sync.register("send"); // as soon as there is a network, also when the page is closed
  else device.start(); // Firefox and Safari have no background sync: while the page is open
}

function Card() {
  const { step, campaign, problem, agree, decline, contribute } =
    useCampaign(joined);
  useEffect(() => {
    if (step === "contribute")
      void contribute(known.record, known.label).then(send);
  }, [step]);
  if (problem)
    return <p role="alert">Not now: {problem.code ?? String(problem)}</p>;
  if (step !== "ask")
    return <p>{step === "nothing" ? "Nothing to do." : "One moment."}</p>;
  return (
    <section>
      <h1>{campaign.title}</h1>
      <p>{campaign.purpose}</p>
      <p>
        Your answer is made noisy here, before it leaves: epsilon{" "}
        {campaign.realisedEpsilon.toFixed(2)}.
      </p>
      <button onClick={agree}>I agree</button>{" "}
      <button onClick={decline}>No</button>
    </section>
  );
}

createRoot(document.getElementById("app")).render(
  <StrictMode>
    <Card />
  </StrictMode>,
);
