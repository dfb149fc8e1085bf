// Express: `node express_receiver.cjs`
const express = require("express");
const { SignatureError, verify } = require("signpost-receiver");

const app = express();

// express.raw keeps the bytes. Its default limit is 100 kB, and deliveries can exceed 1 MiB.
// Register this route before any app.use(express.json()).
app.post("/hook", express.raw({ type: "application/json", limit: "4mb" }), (request, response) => {
  // With another Content-Type there is no body, and no signature fits.
  const body = Buffer.isBuffer(request.body) ? request.body : "";
  let event;
  try {
    event = verify(process.env.SIGNPOST_SECRET, request.headers, body);
  } catch (error) {
    if (error instanceof SignatureError) return response.sendStatus(401);
    throw error;
  }
  console.log(event.id); // INSERT INTO inbox … ON CONFLICT (id) DO NOTHING
  response.sendStatus(204);
});

app.listen(Number(process.env.PORT), "127.0.0.1");
