// Somebody who is logged in (by a session cookie) and presses Allow.
export const [url, method, cookies] = process.argv.slice(2);
export const redirectUri = "http://127.0.0.1:4567/callback";
export const resource = `${url}/v1/webhooks`;

export async function allow(address) {
  const page = await fetch(address, { headers: { cookie: cookies } });
  const text = await page.text();
  const token = /name="csrfmiddlewaretoken" value="([^"]+)"/.exec(text)?.[1];
  if (!token) throw new Error(`no consent page: ${page.status} ${text}`);
  const csrf = page.headers.getSetCookie().map((line) => line.split(";")[0]);
  const answer = await fetch(address, {
    method: "POST",
    redirect: "manual",
    headers: { cookie: [cookies, ...csrf].join("; ") },
    body: new URLSearchParams({ csrfmiddlewaretoken: token, allow: "yes" }),
  });
  if (answer.status !== 303) throw new Error(`not allowed: ${answer.status}`);
  return new URL(answer.headers.get("location"));
}

export async function statusWith(accessToken) {
  const headers = accessToken ? { authorization: `Bearer ${accessToken}` } : {};
  return (await fetch(resource, { headers })).status;
}

export const metadata = {
  redirect_uris: [redirectUri],
  client_name: "Node",
  token_endpoint_auth_method: method,
};

export async function report(first, second) {
  const statuses = [
    await statusWith(),
    await statusWith(first.access_token),
    await statusWith(second.access_token),
  ];
  console.log(
    JSON.stringify({
      statuses,
      first: first.refresh_token,
      second: second.refresh_token,
      scope: second.scope,
    }),
  );
}
