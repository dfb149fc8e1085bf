/** The types of the events that Signpost sends; `type` tells them apart. */

export interface Segment {
  speaker?: string;
  start?: number;
  end?: number;
  text?: string;
}

export interface Transcript {
  language?: string;
  text: string;
  truncated: boolean;
  segments?: Segment[];
}

export interface Summary {
  label: string;
  content: string;
  format: string;
  template_name?: string;
}

export interface SummaryCompletedData {
  audio_id: string;
  report_id?: string;
  status?: number;
  title?: string;
  duration_ms?: number;
  recorded_at?: string;
  transcript?: Transcript;
  summaries?: Summary[];
}

export interface PingData {
  endpoint_id: string;
}

export interface IngestCompletedData {
  document_id: string;
  title: string;
  content_type: string;
  checksum: string;
  size_bytes: number;
  characters: number;
  chunk_count: number;
  metadata: Record<string, unknown>;
  created_at: string;
}

export interface PolicyViolationData {
  decision_id: string;
  decision: "denied";
  principal_id: string;
  action: string;
  resource: string;
  reason: string;
  decided_at: string;
}

export interface DriftDetectedData {
  subject: string;
  metric: string;
  value: number;
  threshold: number;
}

export interface EvalRegressionData {
  run_id: string;
  suite: string;
  score: number;
  baseline: number;
}

export interface TestData {
  subscription_id: string;
}

export interface EndpointStateData {
  subscription_id: string;
  url: string;
  since: string | null;
  attempts: number;
  error: string | null;
  message: string;
}

export interface BudgetThresholdData {
  budget: string;
  subject: string;
  counts: string;
  window: string;
  percent: number;
  limit: number | string;
  used: number | string;
  resets_at: string;
}

interface RecordingEvent<Type extends string, Data> {
  id: string;
  type: Type;
  created_at: string;
  data: Data;
}

interface GatewayEvent<Type extends string, Data> extends RecordingEvent<Type, Data> {
  tenant_id: string;
  request_id: string;
  principal_id: string;
  trace_id: string;
}

export type Event =
  | RecordingEvent<"summary.completed", SummaryCompletedData>
  | RecordingEvent<"webhook.ping", PingData>
  | GatewayEvent<"ingest.completed", IngestCompletedData>
  | GatewayEvent<"audit.policy_violation", PolicyViolationData>
  | GatewayEvent<"drift.detected", DriftDetectedData>
  | GatewayEvent<"eval.regression", EvalRegressionData>
  | GatewayEvent<"endpoint.failing", EndpointStateData>
  | GatewayEvent<"endpoint.disabled", EndpointStateData>
  | GatewayEvent<"endpoint.recovered", EndpointStateData>
  | GatewayEvent<"budget.threshold", BudgetThresholdData>
  | GatewayEvent<"webhook.test", TestData>;

/** The request has no valid signature; the message says which part is wrong. */
export class SignatureError extends Error {}

export interface Options {
  /** The largest accepted distance in seconds between the signed time and now. 0 skips the check. */
  toleranceS?: number;
  /** The current unix time in seconds. */
  now?: number;
  /** The header prefixes of the products. */
  prefixes?: readonly string[];
}

type Headers = Record<string, string | string[] | undefined> | { entries(): Iterable<[string, string]> };

/**
 * Return the event of a genuine request. Throws SignatureError for every other request.
 *
 * `body` is the raw body as it arrived. While you rotate a secret, pass the new and the old one.
 * An empty secret, or `whsec_` alone, fits no request, also beside another secret.
 */
export function verify(
  secret: string | readonly string[],
  headers: Headers,
  body: Uint8Array | string,
  options?: Options,
): Event;
