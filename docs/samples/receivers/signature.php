<?php
// Reads the headers of recording and of the gateway. $headers has names in lower case.
function signpost_verify(?string $secret, array $headers, string $body, int $tolerance = 300): bool
{
    if (in_array(trim($secret ?? ''), ['', 'whsec_'], true)) {
        return false; // not set: anyone could sign with it
    }
    $timestamp = $headers['x-recording-timestamp'] ?? '';
    $digests = [preg_replace('/^sha256=/', '', $headers['x-recording-signature'] ?? '')];
    if (isset($headers['x-gateway-signature'])) {
        $timestamp = '';
        $digests = [];
        foreach (explode(',', $headers['x-gateway-signature']) as $part) {
            [$key, $value] = array_pad(explode('=', trim($part), 2), 2, '');
            if ($key === 't') {
                $timestamp = $value;
            } elseif ($key === 'v1') {
                $digests[] = $value;
            }
        }
    }
    if (!preg_match('/\A[0-9]{1,12}\z/', $timestamp) || abs(time() - (int) $timestamp) > $tolerance) {
        return false;
    }
    $expected = hash_hmac('sha256', $timestamp . '.' . $body, $secret);
    $fits = false;
    foreach ($digests as $digest) {
        $fits = hash_equals($expected, $digest) || $fits;
    }
    return $fits;
}
