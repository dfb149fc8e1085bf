// Prints one JSON line per GraphQL over HTTP audit of the endpoint that is the only argument.
import { serverAudits } from "graphql-http";

for (const audit of serverAudits({ url: process.argv[2], fetchFn: fetch })) {
  const { id, name, status, reason } = await audit.fn();
  console.log(JSON.stringify({ id, name, status, reason }));
}
