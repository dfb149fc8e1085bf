// What the benchmark puts into a queue: events of 1 KB. Not counted as code of a user.
import { randomBytes } from "node:crypto";

export function events(url, count) {
  const text = randomBytes(640).toString("base64");
  return Array.from({ length: Number(count) }, () => {
    const id = `evt_${randomBytes(12).toString("hex")}`;
    return { url, id, body: JSON.stringify({ id, type: "ingest.completed", data: { text } }) };
  });
}

export async function inBatches(jobs, add) {
  for (let start = 0; start < jobs.length; start += 500) await add(jobs.slice(start, start + 500));
}
