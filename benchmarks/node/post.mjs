// Sign an event as Standard Webhooks describe it, and post it over kept connections.
import { createHmac } from "node:crypto";
import { Pool } from "undici";

const SECRET = "whsec_" + "bench".repeat(8);
const pools = new Map();

function poolOf(origin) {
  if (!pools.has(origin)) pools.set(origin, new Pool(origin, { connections: 256 }));
  return pools.get(origin);
}

export async function post({ url, id, body }) {
  const { origin, pathname } = new URL(url);
  const timestamp = Math.floor(Date.now() / 1000);
  const signed = createHmac("sha256", SECRET).update(`${id}.${timestamp}.${body}`).digest("base64");
  const answer = await poolOf(origin).request({
    method: "POST",
    path: pathname,
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": `v1,${signed}`,
    },
    body,
  });
  await answer.body.dump();
  if (answer.statusCode >= 300) throw new Error(`answered ${answer.statusCode}`);
}
