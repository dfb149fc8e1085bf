// oauth4webapi, the strictest of them: every answer is checked against its RFC.
import * as oauth from "oauth4webapi";
import { allow, metadata, method, redirectUri, report, resource, url } from "./person.mjs";

const plain = { [oauth.allowInsecureRequests]: true };
const asked = await fetch(resource);
const challenges = oauth.WWWAuthenticateChallengeError && asked.headers.get("www-authenticate");
if (!challenges?.includes("resource_metadata=")) throw new Error("no challenge");
const described = await oauth.processResourceDiscoveryResponse(
  new URL(url),
  await oauth.resourceDiscoveryRequest(new URL(url), plain),
);
const issuer = new URL(described.authorization_servers[0]);
const as = await oauth.processDiscoveryResponse(
  issuer,
  await oauth.discoveryRequest(issuer, { ...plain, algorithm: "oauth2" }),
);
const client = await oauth.processDynamicClientRegistrationResponse(
  await oauth.dynamicClientRegistrationRequest(as, metadata, plain),
);
const authentication = {
  none: () => oauth.None(),
  client_secret_basic: () => oauth.ClientSecretBasic(client.client_secret),
  client_secret_post: () => oauth.ClientSecretPost(client.client_secret),
}[method]();

const verifier = oauth.generateRandomCodeVerifier();
const address = new URL(as.authorization_endpoint);
address.search = new URLSearchParams({
  client_id: client.client_id,
  redirect_uri: redirectUri,
  response_type: "code",
  scope: "mcp:connect",
  state: "a-state",
  resource: described.resource,
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
});
const parameters = oauth.validateAuthResponse(as, client, await allow(address), "a-state");
const first = await oauth.processAuthorizationCodeResponse(
  as,
  client,
  await oauth.authorizationCodeGrantRequest(as, client, authentication, parameters, redirectUri, verifier, {
    ...plain,
    additionalParameters: { resource: described.resource },
  }),
);
const second = await oauth.processRefreshTokenResponse(
  as,
  client,
  await oauth.refreshTokenGrantRequest(as, client, authentication, first.refresh_token, plain),
);
const used = await oauth.protectedResourceRequest(
  second.access_token, "GET", new URL(resource), undefined, undefined, plain,
);
if (used.status !== 200) throw new Error(`resource: ${used.status}`);
await report(first, second);
const third = await oauth.processRefreshTokenResponse(
  as,
  client,
  await oauth.refreshTokenGrantRequest(as, client, authentication, second.refresh_token, plain),
);
await oauth.processRevocationResponse(
  await oauth.revocationRequest(as, client, authentication, third.refresh_token, plain),
);
