#!/bin/sh
# Publish an event with curl, and wait until a receiver has verified it: `sh publish.sh`
# The receiver is django_receiver.py, which answers 204 to a genuine request alone.
set -eu
api="$SIGNPOST_URL/v1"

call() {
  curl -sS --fail-with-body -H "Authorization: Bearer $SIGNPOST_KEY" -H 'Content-Type: application/json' "$@"
}

# The first value of a field in a JSON response.
field() {
  sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | head -n 1
}

subscription=$(call "$api/webhooks/subscriptions" \
  -d "{\"url\": \"http://127.0.0.1:$PORT/hook\", \"event_types\": [\"drift.detected\"]}")
id=$(printf '%s' "$subscription" | sed 's/^{"id":"\([^"]*\)".*/\1/')
SIGNPOST_SECRET=$(printf '%s' "$subscription" | field secret)
export SIGNPOST_SECRET
python3 django_receiver.py runserver --noreload "127.0.0.1:$PORT" >/dev/null 2>&1 &
receiver=$!
trap 'kill $receiver; call -X DELETE "$api/webhooks/subscriptions/$id"' EXIT
until curl -s -o /dev/null "http://127.0.0.1:$PORT/hook"; do
  kill -0 $receiver # ends the script if the receiver has ended
  sleep 1
done

event=$(call "$api/events" -d '{"type": "drift.detected", "data":
  {"subject": "embeddings", "metric": "psi", "value": 0.31, "threshold": 0.2}}' | sed 's/^{"id":"\([^"]*\)".*/\1/')
until call "$api/webhooks/subscriptions/$id/deliveries?status=delivered&event_id=$event" | grep -q '"event_id"'; do
  sleep 1
done
echo "verified $event"
