const { verify } = require("./verify.cjs");
const lines = require("node:fs").readFileSync(0, "utf8").split("\n").slice(0, -1);
const text = (hex) => Buffer.from(hex, "hex").toString();
for (const line of lines) {
  const [secret, head, body] = line.split(" ");
  const pairs = text(head).split("\n").filter(Boolean).map((one) => one.split(/: (.*)/s));
  const headers = Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value ?? ""]));
  console.log(verify(text(secret), headers, Buffer.from(body, "hex")) ? 1 : 0);
}
