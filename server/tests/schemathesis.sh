#!/usr/bin/env sh
# Asks a running server what its OpenAPI document allows and forbids: no answer may be a 5xx or differ from the document.
# Usage: schemathesis.sh NEURALCB SCHEMATHESIS [SECONDS]. Which requests are refused is not judged here: what one means
# (which features and actions the policy knows) is beyond the document.
set -eu

neuralcb=$1 schemathesis=$2 seconds=${3:-30}
folder=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server"; fi; rm -rf "$folder"' EXIT
"$neuralcb" simulate quadratic --n 50 --preset released-code --behaviour uniform --out "$folder/log.csv" 2> /dev/null
"$neuralcb" train "$folder/log.csv" --algorithm constant --out "$folder/policy.safetensors" 2> /dev/null

"$neuralcb" serve "$folder/policy.safetensors" --fill-missing --data "$folder/decisions" --durability batch --listen 127.0.0.1:0 \
  2> "$folder/server.log" &
server=$!
until grep -q "^listening on " "$folder/server.log"; do
  kill -0 "$server" || { cat "$folder/server.log"; exit 1; }
  sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$folder/server.log")

checks=not_a_server_error,status_code_conformance,content_type_conformance
checks=$checks,response_headers_conformance,response_schema_conformance
cd "$folder" # it leaves files where it runs
"$schemathesis" --no-color run "$url/openapi.json" --url "$url" \
  --checks "$checks" --phases examples,coverage,fuzzing --max-time "$seconds" --seed 1
kill -0 "$server" || { cat "$folder/server.log"; exit 1; }
