<?php
// Laravel: Route::post('/hook', LaravelController::class) in routes/api.php, which has no CSRF check
namespace App\Http\Controllers;

use Illuminate\Http\Request;
use Illuminate\Support\Facades\DB;

require_once __DIR__ . '/signature.php';

class LaravelController
{
    public function __invoke(Request $request)
    {
        $body = $request->getContent(); // the raw bytes, not $request->all()
        $headers = array_map(fn ($values) => $values[0], $request->headers->all());
        if (!signpost_verify(config('services.signpost.secret'), $headers, $body)) {
            return response('', 401);
        }
        $event = json_decode($body, true);
        DB::table('inbox')->insertOrIgnore(
            ['id' => $event['id'], 'type' => $event['type'], 'body' => $body]
        );
        return response('', 204);
    }
}
