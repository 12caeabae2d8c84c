#!/usr/bin/env sh
# The loop in small: a poor policy is served, its decisions are joined with their rewards, and the next policy learns
# from them. Usage: loop.sh [DATASET [TURNS [DECISIONS]]]; NEURALCB names the program, OUT the folder of what is made.
set -eu

dataset=${1:-quadratic} turns=${2:-5} decisions=${3:-2000}
neuralcb=${NEURALCB:-neuralcb}
out=${OUT:-loop-$dataset}
port=${PORT:-8089}
mkdir -p "$out"
cd "$out"

# A policy that knows nothing: it plays every action alike.
"$neuralcb" simulate "$dataset" --n 200 --preset released-code --behaviour uniform --out first.csv
"$neuralcb" train first.csv --algorithm uniform --out policy.safetensors

"$neuralcb" serve policy.safetensors --data decisions --explore epsilon=0.1 --listen "127.0.0.1:$port" 2> server.log &
server=$!
trap 'kill "$server"' EXIT
until grep -q listening server.log; do
  kill -0 "$server" || { cat server.log; exit 1; }
  sleep 0.1
done

echo "turn,decisions,value,best_value,decisions_per_second" > curve.csv
turn=1
while [ "$turn" -le "$turns" ]; do
  "$neuralcb" simulate "$dataset" --n "$decisions" --skip $(((turn - 1) * decisions)) --preset released-code \
    --client "http://127.0.0.1:$port" --delay 50ms > traffic.json
  sleep 1
  "$neuralcb" join decisions --out log.jsonl --wait 1s
  number() { sed "s/.*\"$1\":\([-0-9.e]*\).*/\1/" traffic.json; }
  echo "$turn,$((turn * decisions)),$(number value),$(number best_value),$(number decisions_per_second)" >> curve.csv
  tail -n 1 curve.csv
  if [ "$turn" -lt "$turns" ]; then
    "$neuralcb" tune log.jsonl --out next.safetensors --mode S > "tune-$turn.txt"
    mv next.safetensors policy.safetensors
    sleep 2 # the server looks every second
  fi
  turn=$((turn + 1))
done
