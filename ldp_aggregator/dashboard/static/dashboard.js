// Live numbers and small comforts; every page works without it.
"use strict";

const every = (selector, root = document) => [...root.querySelectorAll(selector)];
const numberText = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const REFRESH_MS = 4000;

// Numbers of reports: the server sends one event an answer, and the browser comes back for the next.
for (const line of every("[data-stream]")) {
  let seen = null, due = null, failed = 0;
  const stream = new EventSource(line.dataset.stream);
  const refresh = async () => {
    due = null;
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of every("[data-live]")) {
      const found = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (!part.isConnected || !found || found.innerHTML === part.innerHTML) continue;
      // Of a figure that is there already only what is in it changes, so that nobody's place in its table is lost.
      const [mine, theirs] = [part, found].map((one) => every("[data-live]", one).length);
      if (mine === 0 || mine !== theirs) part.replaceChildren(...found.childNodes);
    }
  };
  stream.addEventListener("message", ({ data }) => {
    const now = JSON.parse(data);
    failed = 0;
    line.classList.remove("problem");
    line.textContent = "";
    for (const [id, reports] of Object.entries(now.reports)) {
      for (const place of every(`[data-reports="${id}"]`)) place.textContent = numberText(reports);
    }
    (now.questions ?? []).forEach((n, index) => {
      for (const place of every(`[data-question="${index}"]`)) place.textContent = numberText(n);
    });
    const isOld = (seen !== null && seen !== data) || document.querySelector("[data-behind]");
    if (isOld && line.dataset.refresh && due === null) due = setTimeout(refresh, REFRESH_MS);
    seen = data;
  });
  stream.addEventListener("error", () => {
    failed += 1;
    if (failed < 3 && stream.readyState !== EventSource.CLOSED) return;
    line.classList.add("problem");
    line.textContent = "The server does not answer; the numbers stand still. Load the page again, or sign in again.";
  });
}

// The slider shows its number while it moves, and the page follows when it stops.
for (const form of every("[data-slider]")) {
  const [slider, shown] = [form.querySelector("input[type=range]"), form.querySelector("output")];
  slider.addEventListener("input", () => (shown.textContent = slider.value));
  slider.addEventListener("change", () => form.requestSubmit());
}

// A form that takes a while says so, and is sent once.
for (const form of every("[data-busy]")) {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button");
    button.textContent = form.dataset.busy;
    button.setAttribute("aria-busy", "true");
    setTimeout(() => (button.disabled = true));
  });
}

// A draft is checked while it is written.
for (const form of every("[data-check]")) {
  const verdict = document.querySelector("#verdict");
  let waiting = null, turn = 0;
  const check = async () => {
    const mine = ++turn;
    verdict.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(form.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      const text = await answer.text();
      if (mine !== turn) return;
      const found = new DOMParser().parseFromString(text, "text/html").querySelector("#verdict, main");
      verdict.replaceChildren(...found.childNodes);
    } catch {
      if (mine === turn) verdict.textContent = "The server does not answer; the draft was not checked.";
    }
    if (mine === turn) verdict.removeAttribute("aria-busy");
  };
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(check, 400);
  });
}
