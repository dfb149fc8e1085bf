// Next.js: app/hook/route.ts
import { SignatureError, verify } from "signpost-receiver";

export const runtime = "nodejs"; // node:crypto isn't in the edge runtime

export async function POST(request: Request): Promise<Response> {
  const body = new Uint8Array(await request.arrayBuffer()); // not request.json()
  try {
    const event = verify(process.env.SIGNPOST_SECRET ?? "", request.headers, body);
    console.log(event.id); // INSERT INTO inbox … ON CONFLICT (id) DO NOTHING
  } catch (error) {
    if (error instanceof SignatureError) return new Response(null, { status: 401 });
    throw error;
  }
  return new Response(null, { status: 204 });
}
