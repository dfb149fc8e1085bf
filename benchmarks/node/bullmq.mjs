// BullMQ on Redis: node bullmq.mjs (queue URL COUNT | work)
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { events, inBatches } from "./events.mjs";
import { post } from "./post.mjs";

const name = process.env.BENCH_NAME;
const connection = new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null });
const options = { removeOnComplete: true, attempts: 5, backoff: { type: "exponential", delay: 1000 } };
const [action, url, count] = process.argv.slice(2);

if (action === "queue") {
  const queue = new Queue(name, { connection, defaultJobOptions: options });
  await inBatches(events(url, count), (jobs) => queue.addBulk(jobs.map((data) => ({ name: "deliver", data }))));
  await queue.close();
  connection.disconnect();
} else {
  new Worker(name, (job) => post(job.data), { connection, concurrency: 256 });
}
