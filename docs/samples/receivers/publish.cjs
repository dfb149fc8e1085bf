// Publish an event, and verify what arrives: `node publish.cjs`
const http = require("node:http");
const { SignatureError, verify } = require("signpost-receiver");

const { SIGNPOST_URL, SIGNPOST_KEY, PORT } = process.env;
const DRIFT = { subject: "embeddings", metric: "psi", value: 0.31, threshold: 0.2 };

async function call(method, path, body) {
  const response = await fetch(SIGNPOST_URL + path, {
    method,
    headers: { Authorization: `Bearer ${SIGNPOST_KEY}`, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.status === 204 ? null : response.json();
}

/** Listen, and give each genuine event to `take`. */
function receive(secret, take) {
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    try {
      take(verify(secret, request.headers, Buffer.concat(chunks)));
      response.writeHead(204).end();
    } catch (error) {
      if (!(error instanceof SignatureError)) throw error;
      response.writeHead(401).end();
    }
  });
  return new Promise((listening) => server.listen(Number(PORT), "127.0.0.1", () => listening(server)));
}

async function main() {
  const subscription = await call("POST", "/v1/webhooks/subscriptions", {
    url: `http://127.0.0.1:${PORT}/hook`,
    event_types: ["drift.detected"],
  });
  let take;
  const arrived = new Promise((resolve) => (take = resolve));
  const server = await receive(subscription.secret, take);
  const published = await call("POST", "/v1/events", { type: "drift.detected", data: DRIFT });
  const event = await arrived;
  if (event.id !== published.id) throw new Error(`another event arrived: ${event.id}`);
  console.log("verified", event.id);
  await call("DELETE", `/v1/webhooks/subscriptions/${subscription.id}`);
  server.close();
  server.closeAllConnections();
}

main();
