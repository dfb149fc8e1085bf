// graphile-worker on PostgreSQL: node graphile.mjs (queue URL COUNT | work)
import { makeWorkerUtils, run } from "graphile-worker";
import { events, inBatches } from "./events.mjs";
import { post } from "./post.mjs";

const connectionString = process.env.DATABASE_URL;
const [action, url, count] = process.argv.slice(2);

if (action === "queue") {
  const utils = await makeWorkerUtils({ connectionString });
  await utils.migrate();
  await inBatches(events(url, count), (jobs) =>
    utils.addJobs(jobs.map((payload) => ({ identifier: "deliver", payload, maxAttempts: 6 }))));
  await utils.release();
} else {
  const worker = { concurrentJobs: 256, localQueue: { size: 500, refetchDelay: { durationMs: 10 } }, completeJobBatchDelay: 0, failJobBatchDelay: 0, pollInterval: 100 };
  await run({
    preset: { worker: { connectionString, maxPoolSize: 10, ...worker } },
    taskList: { deliver: (payload) => post(payload) },
  });
}
