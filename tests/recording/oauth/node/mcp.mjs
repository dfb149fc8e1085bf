// The MCP TypeScript SDK: discovery from the 401, registration, code, refresh.
import { auth, extractWWWAuthenticateParams } from "@modelcontextprotocol/sdk/client/auth.js";
import { allow, metadata, redirectUri, report, resource } from "./person.mjs";

let client, tokens, verifier, sent;
const provider = {
  redirectUrl: redirectUri,
  clientMetadata: metadata,
  state: () => "a-state",
  clientInformation: () => client,
  saveClientInformation: (given) => void (client = given),
  tokens: () => tokens,
  saveTokens: (given) => void (tokens = given),
  redirectToAuthorization: async (address) => void (sent = await allow(address)),
  saveCodeVerifier: (given) => void (verifier = given),
  codeVerifier: () => verifier,
};

const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(await fetch(resource));
if (!resourceMetadataUrl) throw new Error("the 401 names no metadata");
const options = { serverUrl: resource, resourceMetadataUrl, scope };
if ((await auth(provider, options)) !== "REDIRECT") throw new Error("not redirected");
if (sent.searchParams.get("state") !== "a-state") throw new Error("wrong state");
const authorizationCode = sent.searchParams.get("code");
const iss = sent.searchParams.get("iss");
if ((await auth(provider, { ...options, authorizationCode, iss })) !== "AUTHORIZED") throw new Error("no token");
const first = tokens;
if ((await auth(provider, options)) !== "AUTHORIZED") throw new Error("not refreshed");
await report(first, tokens);
