<?php
// Plain PHP: `php -S 127.0.0.1:8000 receiver.php`
require __DIR__ . '/signature.php';

$body = file_get_contents('php://input'); // the raw bytes
$headers = array_change_key_case(getallheaders(), CASE_LOWER);
$genuine = signpost_verify(getenv('SIGNPOST_SECRET') ?: null, $headers, $body);
// if ($genuine): INSERT INTO inbox … ON CONFLICT (id) DO NOTHING
http_response_code($genuine ? 204 : 401);
