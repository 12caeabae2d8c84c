#!/usr/bin/env sh
# The loop in small: a poor policy is served, its decisions are joined with their rewards, and the next policy learns
# from them. Usage: loop.sh [DATASET [TURNS [DECISIONS]]]; NEURALCB names the program, OUT the folder of what is made:
# curve.csv has the value of each turn, curve.svg draws it.
set -eu

# The curve as a picture: the value that was played, turn by turn, below the best that there is.
draw() {
  awk -F, -v title="$1" '
    function x(turn) { return 90 + (turn - 1) * 410 / (n > 1 ? n - 1 : 1) }
    function y(value) { return 240 - 200 * (value - low) / (high - low) }
    NR > 1 { n++; decisions[n] = $2; value[n] = $3; best[n] = $4 }
    END {
      low = 0; high = 1e-9
      for (i = 1; i <= n; i++) {
        if (value[i] < low) low = value[i]
        if (value[i] > high) high = value[i]
        if (best[i] > high) high = best[i]
      }
      print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 560 300\" font-family=\"sans-serif\" font-size=\"13\">"
      print "<style>text { fill: #222 } .axis { stroke: #888 } .best { stroke: #888; stroke-dasharray: 5 4 }"
      print ".value { stroke: #4477aa; stroke-width: 2; fill: none } circle { fill: #4477aa }"
      print "@media (prefers-color-scheme: dark) { text { fill: #ddd } }</style>"
      printf "<text x=\"60\" y=\"20\">%s: expected reward of a decision</text>\n", title
      printf "<path class=\"axis\" d=\"M60 40V240H520\" fill=\"none\"/>\n"
      for (i = 1; i <= n; i++) {
        line = line (i > 1 ? " " : "") x(i) "," y(value[i])
        top = top (i > 1 ? " " : "") x(i) "," y(best[i])
        printf "<circle cx=\"%g\" cy=\"%g\" r=\"4\"/>", x(i), y(value[i])
        printf "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%.3f</text>", x(i), y(value[i]) + 20, value[i]
        printf "<text x=\"%g\" y=\"258\" text-anchor=\"middle\">%d</text>\n", x(i), decisions[i]
      }
      printf "<polyline class=\"value\" points=\"%s\"/><polyline class=\"best\" points=\"%s\" fill=\"none\"/>\n", line, top
      printf "<text x=\"52\" y=\"244\" text-anchor=\"end\">%g</text>", low
      printf "<text x=\"52\" y=\"44\" text-anchor=\"end\">%.3g</text>\n", high
      print "<text x=\"290\" y=\"284\" text-anchor=\"middle\">decisions served so far (dashed: the best there is)</text>\n</svg>"
    }' curve.csv > curve.svg
}

dataset=${1:-quadratic} turns=${2:-5} decisions=${3:-2000}
neuralcb=${NEURALCB:-neuralcb}
out=${OUT:-loop-$dataset}
port=${PORT:-8089}
wait=5 # seconds until a reward comes too late
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
  sleep "$wait"
  "$neuralcb" join decisions --out log.jsonl --wait "${wait}s"
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
draw "$dataset"
