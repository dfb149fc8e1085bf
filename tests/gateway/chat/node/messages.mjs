// What Anthropic's own client and the AI SDK read from the address and with the key that they are given.
import Anthropic, { APIError, BadRequestError, NotFoundError } from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { generateText, streamText, tool, jsonSchema, stepCountIs } from "ai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new Anthropic({ baseURL, apiKey, maxRetries: 0 });
const fields = { model: "small", max_tokens: 64, messages: [{ role: "user", content: "Hi" }] };

const failure = async (model) => {
  try {
    await client.messages.create({ ...fields, model });
  } catch (error) {
    return { status: error.status, kind: error.constructor.name };
  }
};

const whole = await client.messages.create(fields);
const streamed = await client.messages.stream(fields).finalMessage();
let broken = "";
try {
  const parts = await client.messages.create({ ...fields, model: "broken", stream: true });
  for await (const part of parts) broken += part.delta?.text ?? "";
} catch (error) {
  broken += `|${error instanceof APIError}`;
}

const model = createAnthropic({ baseURL: `${baseURL}/v1`, apiKey })("small");
const { text } = await generateText({ model, prompt: "Hi", maxRetries: 0 });
let parts = "";
for await (const part of streamText({ model, prompt: "Hi", maxRetries: 0 }).textStream) parts += part;
const tide = tool({
  inputSchema: jsonSchema({ type: "object", properties: { at: { type: "string" } } }),
  execute: async ({ at }) => `low at ${at}`,
});
const loop = await generateText({
  model: createAnthropic({ baseURL: `${baseURL}/v1`, apiKey })("tools"),
  prompt: "When?",
  tools: { tide },
  stopWhen: stepCountIs(3),
  maxRetries: 0,
});

console.log(
  JSON.stringify({
    whole: whole.content[0].text,
    streamed: streamed.content[0].text,
    tokens: streamed.usage.output_tokens,
    broken,
    absent: await failure("absent"),
    refused: await failure("refusing"),
    knows: [BadRequestError.name, NotFoundError.name],
    ai: [text, parts, loop.text, loop.steps.length],
  }),
);
