"use strict";

const { createHmac, timingSafeEqual } = require("node:crypto");

const MAX_HEADER = 4096;
const EMPTY = new Set(["", "whsec_"]);
const UNIX_TIME = /^[0-9]{1,12}$/;

/** The request has no valid signature; the message says which part is wrong. */
class SignatureError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = "SignatureError";
  }
}

function verify(secret, headers, body, options = {}) {
  const { toleranceS = 300, now = Date.now() / 1000, prefixes = ["X-Recording", "X-Gateway"] } = options;
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw new TypeError("body is the raw body: bytes or a string, not a parsed object");
  }
  const secrets = checked(secret);
  const signed = read(headerReader(headers), prefixes);
  if (!UNIX_TIME.test(signed.timestamp)) {
    throw new SignatureError("the timestamp is not a unix time in seconds");
  }
  const distance = Math.abs(now - Number(signed.timestamp));
  // NaN skips no check.
  if (toleranceS !== 0 && !(distance <= toleranceS)) {
    throw new SignatureError("the timestamp is too far from now");
  }
  // Every pair is compared, so that the time taken does not depend on which one fits.
  const fits = secrets.flatMap((one) => {
    const expected = Buffer.from(expectedDigest(one, signed, body));
    return signed.digests.map((digest) => equal(expected, Buffer.from(digest)));
  });
  if (!fits.includes(true)) {
    throw new SignatureError("no signature fits secret, timestamp and body");
  }
  return readEvent(body);
}

/** Return the secrets. Throws SignatureError if one is missing or empty: anyone can sign with it. */
function checked(secret) {
  const secrets = Array.isArray(secret) ? secret : [secret];
  if (!secrets.every((one) => typeof one === "string" && !EMPTY.has(one.trim()))) {
    throw new SignatureError("a secret is empty or not a text");
  }
  return secrets;
}

function readEvent(body) {
  let event;
  try {
    event = JSON.parse(typeof body === "string" ? body : Buffer.from(body).toString());
  } catch (cause) {
    throw new SignatureError("the body is not JSON", { cause });
  }
  if (typeof event?.type !== "string") throw new SignatureError("the body is not an event");
  return event;
}

function equal(expected, given) {
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** Return a function that looks a header up in a Headers object or in a plain one. */
function headerReader(headers) {
  const entries = typeof headers.entries === "function" ? [...headers.entries()] : Object.entries(headers);
  const values = new Map(entries.map(([name, value]) => [name.toLowerCase(), value]));
  return (name) => {
    const value = values.get(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "string" || value.length > MAX_HEADER) {
      throw new SignatureError(`the ${name} header is too long or not a text`);
    }
    return value;
  };
}

function read(header, prefixes) {
  for (const prefix of prefixes.map((one) => one.toLowerCase())) {
    const value = header(`${prefix}-signature`);
    if (value?.startsWith("sha256=")) {
      return { timestamp: header(`${prefix}-timestamp`) ?? "", digests: [value.slice("sha256=".length)] };
    }
    if (value !== undefined) return readTimestamped(value);
  }
  const value = header("webhook-signature");
  const eventId = header("webhook-id");
  if (value === undefined || eventId === undefined) {
    throw new SignatureError("the request has no signature header");
  }
  const given = value.split(" ").filter((part) => part.startsWith("v1,"));
  return {
    timestamp: header("webhook-timestamp") ?? "",
    digests: given.map((part) => part.slice("v1,".length)),
    eventId,
  };
}

/** Read `t=<unix time>,v1=<hex>`, with a `v1=` for each secret. */
function readTimestamped(value) {
  const parts = value.split(",").map((part) => part.trim());
  const of = (key) => parts.filter((part) => part.startsWith(`${key}=`)).map((part) => part.slice(key.length + 1));
  const times = of("t");
  const digests = of("v1");
  if (times.length !== 1 || digests.length === 0) {
    throw new SignatureError("the signature header is not t=<unix time>,v1=<hex>");
  }
  return { timestamp: times[0], digests };
}

function expectedDigest(secret, { timestamp, eventId }, body) {
  if (eventId === undefined) {
    return createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
  }
  const message = createHmac("sha256", standardKey(secret)).update(`${eventId}.${timestamp}.`);
  return message.update(body).digest("base64");
}

/** Return the key as Standard Webhooks reads a secret: `whsec_`, then base64. */
function standardKey(secret) {
  const text = secret.replace(/^whsec_/, "");
  const key = Buffer.from(text, "base64");
  if (key.toString("base64") !== text) throw new SignatureError("the secret is not whsec_ and base64");
  return key;
}

module.exports = { SignatureError, verify };
