// Serves the page and the built package on http://localhost:5173, as any server of static files would.
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, normalize } from "node:path";

const HERE = new URL(".", import.meta.url).pathname;
const PACKAGE = new URL("../../javascript/dist/", import.meta.url).pathname;
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css" };
const [port = "5173"] = process.argv.slice(2);

const server = createServer((request, answer) => {
  const path = normalize(new URL(request.url, "http://page").pathname).replace(
    /^\/$/,
    "/index.html",
  );
  const file = path.startsWith("/ldp-bayes-client/")
    ? join(PACKAGE, path.slice(18))
    : join(HERE, path);
  const type = TYPES[path.split(".").pop()];
  if (!type || !existsSync(file)) return answer.writeHead(404).end();
  answer.writeHead(200, {
    "Content-Type": `${type}; charset=utf-8`,
    // Scripts and styles from here alone; the aggregator may be elsewhere.
    "Content-Security-Policy":
      "default-src 'self'; connect-src 'self' https: http://127.0.0.1:* http://localhost:*",
  });
  answer.end(readFileSync(file));
});
server.listen(Number(port), "127.0.0.1", () =>
  console.log(`http://localhost:${server.address().port}`),
);
