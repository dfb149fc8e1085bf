// What OpenAI's own client reads from the address and with the key that it is given, as JSON.
import OpenAI, { BadRequestError, NotFoundError } from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const messages = [{ role: "user", content: "Hi" }];

const failure = async (model) => {
  try {
    await client.chat.completions.create({ model, messages });
  } catch (error) {
    return { status: error.status, kind: error.constructor.name };
  }
};

const whole = await client.chat.completions.create({ model: "small", messages });
const stream = await client.chat.completions.create({
  model: "small",
  messages,
  stream: true,
  stream_options: { include_usage: true },
});
let text = "";
let usage = null;
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta.content ?? "";
  usage = chunk.usage ?? usage;
}
let broken = "";
try {
  const parts = await client.chat.completions.create({ model: "broken", messages, stream: true });
  for await (const part of parts) broken += part.choices[0].delta.content ?? "";
} catch (error) {
  broken += `|${error.constructor.name}`;
}
console.log(
  JSON.stringify({
    whole: whole.choices[0].message.content,
    model: whole.model,
    text,
    tokens: usage?.completion_tokens,
    broken,
    absent: await failure("absent"),
    refused: await failure("refusing"),
    knows: [BadRequestError.name, NotFoundError.name],
  }),
);
