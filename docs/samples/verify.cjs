const { createHmac, timingSafeEqual } = require("node:crypto");

// `headers` as Node has them (names in lower case), `body` a Buffer of the raw bytes.
function verify(secret, headers, body, toleranceS = 300) {
  if (["", "whsec_"].includes((secret ?? "").trim())) return false; // not set: anyone could sign with it
  let times, given;
  const gateway = headers["x-gateway-signature"];
  if (gateway !== undefined) { // t=...,v1=... and, while a secret rotates, more v1=...
    const pairs = String(gateway).slice(0, 4096).split(",").map((part) => part.trim().split("="));
    times = pairs.filter(([key]) => key === "t").map(([, value]) => value ?? "");
    given = pairs.filter(([key]) => key === "v1").map(([, value]) => value ?? "");
  } else {
    const [scheme, value] = String(headers["x-recording-signature"] ?? "").split("=");
    times = [String(headers["x-recording-timestamp"] ?? "")];
    given = scheme === "sha256" ? [value ?? ""] : [];
  }
  if (times.length !== 1 || !/^[0-9]{1,12}$/.test(times[0])) return false;
  if (toleranceS && Math.abs(Date.now() / 1000 - Number(times[0])) > toleranceS) return false;
  const hmac = createHmac("sha256", secret).update(times[0] + ".").update(body);
  const expected = Buffer.from(hmac.digest("hex"));
  return given
    .map((value) => Buffer.from(value))
    .some((value) => value.length === expected.length && timingSafeEqual(value, expected));
}

module.exports = { verify };
