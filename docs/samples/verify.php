<?php
// $headers has names in lower case, $body is the raw body: file_get_contents('php://input').
function signpost_verify(?string $secret, array $headers, string $body, int $tolerance = 300): bool
{
    if (in_array(trim($secret ?? ''), ['', 'whsec_'], true)) {
        return false; // not set: anyone could sign with it
    }
    $times = $given = [];
    if (isset($headers['x-gateway-signature'])) { // t=...,v1=...
        foreach (explode(',', $headers['x-gateway-signature']) as $part) {
            [$key, $value] = array_pad(explode('=', trim($part), 2), 2, '');
            if ($key === 't') {
                $times[] = $value;
            } elseif ($key === 'v1') {
                $given[] = $value;
            }
        }
    } elseif (str_starts_with($headers['x-recording-signature'] ?? '', 'sha256=')) {
        $times = [$headers['x-recording-timestamp'] ?? ''];
        $given = [substr($headers['x-recording-signature'], 7)];
    }
    if (count($times) !== 1 || !preg_match('/\A[0-9]{1,12}\z/', $times[0])) {
        return false;
    }
    if (abs(time() - (int) $times[0]) > $tolerance) {
        return false;
    }
    $expected = hash_hmac('sha256', $times[0] . '.' . $body, $secret);
    $fits = false;
    foreach ($given as $value) {
        $fits = hash_equals($expected, $value) || $fits;
    }
    return $fits;
}
