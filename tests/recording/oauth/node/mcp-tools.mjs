// The MCP TypeScript SDK, told nothing but the address: authorization, then tools.
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { allow, metadata, redirectUri, url } from "./person.mjs";

let client, tokens, verifier, sent;
const authProvider = {
  redirectUrl: redirectUri,
  clientMetadata: metadata,
  clientInformation: () => client,
  saveClientInformation: (given) => void (client = given),
  tokens: () => tokens,
  saveTokens: (given) => void (tokens = given),
  redirectToAuthorization: async (address) => void (sent = await allow(address)),
  saveCodeVerifier: (given) => void (verifier = given),
  codeVerifier: () => verifier,
};
const transport = () => new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { authProvider });
const connected = () => new Client({ name: "test", version: "1" });

const first = transport();
try {
  await connected().connect(first);
  throw new Error("connected without a token");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
await first.finishAuth(sent.searchParams.get("code"), sent.searchParams.get("iss"));
const mcp = connected();
await mcp.connect(transport());
const { tools } = await mcp.listTools();
const found = await mcp.callTool({ name: "search_recordings", arguments: { query: "harbour" } });
const [hit] = found.structuredContent.hits;
const read = await mcp.readResource({ uri: `recording://${hit.audio_id}` });
const refused = await mcp.callTool({ name: "get_recording", arguments: { audio_id: "none" } });
await mcp.close();
console.log(
  JSON.stringify({
    tools: tools.length,
    title: hit.title,
    document: read.contents[0].text,
    isError: refused.isError,
  }),
);
