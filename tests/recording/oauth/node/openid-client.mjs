// openid-client as a plain OAuth 2 client: discovery, dynamic registration, code, refresh.
import * as client from "openid-client";
import { allow, metadata, method, redirectUri, report, url } from "./person.mjs";

const options = { algorithm: "oauth2", execute: [client.allowInsecureRequests] };
const authentication = {
  none: () => client.None(),
  client_secret_basic: () => client.ClientSecretBasic(),
  client_secret_post: () => client.ClientSecretPost(),
}[method]();
const config = await client.dynamicClientRegistration(new URL(url), metadata, authentication, options);
const verifier = client.randomPKCECodeVerifier();
const state = client.randomState();
const address = client.buildAuthorizationUrl(config, {
  redirect_uri: redirectUri,
  scope: "mcp:connect",
  state,
  resource: url,
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
});
const returned = await allow(address);
const first = await client.authorizationCodeGrant(
  config, returned, { pkceCodeVerifier: verifier, expectedState: state }, { resource: url },
);
const second = await client.refreshTokenGrant(config, first.refresh_token, { resource: url });
await report(first, second);
