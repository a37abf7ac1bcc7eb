#!/bin/sh
# network: calibration across hosts, on a network of namespaces whose rate and delay are known (tests/net/network.sh). Limits are wide:
# other work on this machine only slows messages down. The strict ones are in tests/unit/test_network.c, on a recording.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
root=${DLMODEL_ROOT:-$(pwd)}
export DLMODEL_ROOT="$root"
# shellcheck source=tests/net/network.sh
. tests/net/network.sh
build=$(dirname "$DLMODEL")
work=$SCRATCH

if [ -n "${SANITIZED-}" ]; then
    echo 'skip network: the pass with sanitizers (LeakSanitizer reports memory of Open MPI itself); the plain pass has it'
    exit 0
fi
if [ ! -x "$build/dlmodel-probe-mpi" ]; then
    echo 'skip network: built without MPI (Debian package libopenmpi-dev)'
    exit 0
fi
why=$(net_why)
if [ -n "$why" ]; then
    echo "skip network: $why"
    exit 0
fi

cal() {
    net_run "$DLMODEL" calibrate "$@" > "$work/out" 2> "$work/err" < /dev/null
    status=$?
}
between() { # between NAME KEY LOW HIGH: the first number of that key in the profile
    value=$(sed -n "s/.*\"$2\": *\([-+.0-9e]*\).*/\1/p" "$work/inter" | head -n 1)
    says "$1 (${value:-none})" awk -v x="${value:-nan}" -v a="$3" -v b="$4" 'BEGIN { exit !(x >= a && x <= b) }'
}
export DLMODEL_LOCAL="$work/local.json" DLMODEL_DATA="$root/data"
profile=$work/p.json
only=pingpong,allreduce
case $("$DLMODEL" calibrate --list) in
*gemm*yes* | *matmul*yes*) ;;
*) echo 'skip network: no matrix product for a profile (Debian package libopenblas-dev or libdnnl-dev)'; exit 0 ;;
esac

if ! net_up 3 1gbit > "$work/up" 2>&1; then
    echo "skip network: $(head -n 1 "$work/up")"
    exit 0
fi
net_hosts 3 > "$work/hosts"

# A run over three hosts, one of which is not there and one of which is slow
echo "${NET}9" >> "$work/hosts"
cal --quick --nodes 4 --hostfile "$work/hosts" --only $only --budget 6 -o "$profile"
check 'calibrate --nodes 4 with a host that is not there' 0 "node ${NET}9 excluded"
sed -n '/"inter"/,/}/p' "$profile" > "$work/inter"
between 'the rate of the network (1 Gbit/s)' bandwidth_bytes_per_s 0.5e8 1.45e8
between 'the latency of the network' latency_s 1e-6 5e-3
says 'the link is no assumption' grep -q '"kind": "ethernet"' "$work/inter"
says 'its pieces are there' grep -q '"beta_s_per_byte"' "$work/inter"
says 'the nodes are named' grep -q "\"hosts\": *\"${NET}1,${NET}2,${NET}3\"" "$profile"
says 'their interfaces too' grep -q '"nics": *"eth0' "$profile"
says 'each pair of nodes was tried' [ "$(grep -c '"pair"' "$profile")" -ge 6 ]
for set in 2 3; do
    says "all-reduce over $set nodes" grep -q "\"fit_allreduce_net_${set}_1\"" "$profile"
done
says 'fits come with a covariance' grep -q 'fit_pingpong_net_1.*covariance' "$profile"
has 'the summary names the network' 'MPI, network +[0-9.]+ MB/s'
run predict --system "$profile" --workload alexnet --framework ideal --nodes 3
check 'predict takes the profile' 0

# One node slower than the others: a tenth of their rate
tc -n "${NET}3" qdisc replace dev eth0 root tbf rate 100mbit burst 32kb latency 50ms
net_hosts 3 > "$work/hosts"
cal --quick --nodes 3 --hostfile "$work/hosts" --only allreduce --budget 2 -o "$profile"
check 'a slow node is excluded' 0 "node ${NET}3 excluded: its messages take [0-9.]+ times"
says 'the others are kept' grep -q '"fit_allreduce_net_2_1"' "$profile"
says 'no rank set needs the slow node' [ "$(grep -c 'fit_allreduce_net_3' "$profile")" -eq 0 ]

# A rank that dies
net_hosts 2 > "$work/hosts"
rm -f "$profile"
net_run "$DLMODEL" calibrate --quick --nodes 2 --hostfile "$work/hosts" --only pingpong --budget 10 -o "$profile" > "$work/out" 2> "$work/err" < /dev/null &
pid=$!
tries=0
until grep -q '"pass":"net".*"repeats"' "$profile.journal" 2> /dev/null || [ $tries -gt 300 ]; do
    tries=$((tries + 1))
    sleep 0.2
done
victim=
for p in $(ip netns pids "${NET}2"); do
    grep -q dlmodel-probe-mpi "/proc/$p/cmdline" 2> /dev/null && grep -q points "/proc/$p/cmdline" 2> /dev/null && victim=$p
done
[ -n "$victim" ] && kill -9 "$victim"
wait $pid
status=$?
check 'a rank that dies' 6 'dlmodel-probe-mpi failed.*continue with --resume'
says 'the profile is not written' [ ! -e "$profile" ]
finished=$(grep -c '"pass":"net"' "$profile.journal")
says 'finished samples are kept' [ "$finished" -gt 2 ]
cal --resume -o "$profile"
check 'after a rank died, --resume completes' 0
says 'with the same nodes' grep -q '"fit_pingpong_net_1"' "$profile"

# All nodes gone: said at once, before minutes of measuring
printf '%s\n%s\n' "${NET}8" "${NET}9" > "$work/hosts"
cal --quick --nodes 2 --hostfile "$work/hosts" --only $only -o "$work/none.json"
check 'no node answers' 6 'nodes answer'
net_down

# Fits and forced algorithms on a recording of this minute, for who asks (NET_RECORD=1): it takes minutes, and timings are no
# pass or fail of `make check`, which judges the recording that is kept (test_network). Other work only makes messages slower, and
# the fastest of all rounds counts: what is wrong stays wrong in the third round too.
if [ -z "${NET_RECORD-}" ]; then
    echo '# no recording: NET_RECORD=1 makes one (5 minutes); make validate-net judges it strictly'
    exit 0
fi
if [ ! -x "$build/tests/unit/test_network" ]; then
    echo 'skip network recording: test_network was not built'
    exit 0
fi
# With more than four programs waiting for each core, a recording says nothing about a network and takes many minutes.
if awk -v cores="$(nproc)" '{ exit !($1 > 4 * cores) }' /proc/loadavg; then
    echo "skip network recording: load average $(cut -d ' ' -f 1 /proc/loadavg) on $(nproc) cores"
    exit 0
fi
round=0 judged=1
: > "$work/samples"
while [ $round -lt 3 ] && [ $judged -ne 0 ]; do
    round=$((round + 1))
    if ! sh tests/net/record.sh "$build" quick >> "$work/samples" 2> "$work/err"; then
        status=$?
        bad 'recording of the test network' 'tests/net/record.sh failed'
        exit 0
    fi
    DL_NET_LOOSE=1 DL_NET_SAMPLES=$work/samples "$build/tests/unit/test_network" > "$work/judged" 2>&1
    judged=$?
done
if [ $judged -eq 0 ]; then
    echo 'ok what was set is fitted again, and forced algorithms are distinguished'
else
    status=$judged
    bad 'what was set is fitted again, and forced algorithms are distinguished' "$(grep -E 'ERROR|#' "$work/judged" | head -n 40)"
fi
