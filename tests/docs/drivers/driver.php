<?php
require __DIR__ . '/verify.php';
while (($line = fgets(STDIN)) !== false) {
    [$secret, $head, $body] = array_map('hex2bin', explode(' ', rtrim($line, "\n")));
    $headers = [];
    foreach (array_filter(explode("\n", $head)) as $one) {
        [$name, $value] = explode(': ', $one, 2);
        $headers[strtolower($name)] = $value;
    }
    echo signpost_verify($secret, $headers, $body) ? 1 : 0, "\n";
}
