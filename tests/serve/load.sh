#!/bin/sh
# load.sh [SECONDS] - predictions per second and latencies at 1, 8 and 64 connections on this machine, by wrk (Debian package wrk), which
# shares its cores. No test.
set -u
seconds=${1:-5} port=${PORT:-18080} work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v wrk > /dev/null || { echo 'no wrk' >&2; exit 5; }
cat > "$work/predict.lua" << 'T'
wrk.method = "POST"
wrk.body = '{"system": "iris-v100", "workload": "resnet50", "framework": "pytorch-ddp", "nodes": 4}'
wrk.headers["Content-Type"] = "application/json"
T
"${DLMODEL:-./dlmodel}" serve --listen "127.0.0.1:$port" --rate 0 2> "$work/said" &
service=$!
sleep 1
for connections in 1 8 64; do
    echo "$connections connections"
    wrk -t1 -c"$connections" -d"${seconds}s" --latency -s "$work/predict.lua" "http://127.0.0.1:$port/v1/predict" |
        grep -E '50%|99%|Requests/sec|Non-2xx|Socket errors'
done
kill "$service"
wait "$service"
