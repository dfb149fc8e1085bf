// pg-boss on PostgreSQL: node pgboss.mjs (queue URL COUNT | work)
import { PgBoss } from "pg-boss";
import { events, inBatches } from "./events.mjs";
import { post } from "./post.mjs";

const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, max: 10 });
boss.on("error", console.error);
await boss.start();
await boss.createQueue("deliver", { retryLimit: 5, retryBackoff: true });
const [action, url, count] = process.argv.slice(2);

if (action === "queue") {
  await inBatches(events(url, count), (jobs) => boss.insert("deliver", jobs.map((data) => ({ data }))));
  await boss.stop();
} else {
  const options = { batchSize: 256, localConcurrency: 2, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true, perJobResults: true };
  await boss.work("deliver", options, (jobs) => Promise.all(jobs.map(deliver)));
}

async function deliver({ id, data }) {
  try {
    await post(data);
    return { id, status: "completed" };
  } catch (error) {
    return { id, status: "failed", output: { message: error.message } };
  }
}
