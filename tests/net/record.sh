#!/bin/sh
# record.sh BUILD [quick] - measures the test network, and prints samples as dlmodel-probe-mpi writes them, one JSON line each. The
# pass of a sample names the network: "1gbit", or "delay=US" behind the switch with that delay; "1gbit:ring"
# is an all-reduce with that algorithm forced on Open MPI. Judged by test_network. quick: for a machine with other load.
set -u
build=$1
quick=${2-}
SCRATCH=${SCRATCH:-$(mktemp -d)}
# shellcheck source=tests/net/network.sh
. tests/net/network.sh
why=$(net_why)
[ -z "$why" ] || { echo "$why" >&2; exit 77; }
probe=$(cd "$build" && pwd)/dlmodel-probe-mpi
net_hosts 4 > "$SCRATCH/hosts"

measure() { # measure RANKS SHARE_S PASS PROBE SIZE...: one start of MPI
    ranks=$1 share=$2 pass=$3 name=$4
    shift 4
    for bytes in "$@"; do
        printf '%s\n' "$name" "bytes=$bytes ranks=$ranks" "$pass" "$share"
    done > "$SCRATCH/points"
    set --
    while IFS= read -r word; do set -- "$@" "$word"; done < "$SCRATCH/points"
    net_run mpirun --allow-run-as-root -np "$ranks" --hostfile "$SCRATCH/hosts" --map-by ppr:1:node sh -c "$net_first" sh "$probe" --points "$@" < /dev/null
}

forced() { # forced RANKS SHARE_S NETWORK SIZE...: every algorithm (numbers: ompi_info --all, coll_tuned_allreduce_algorithm)
    f_ranks=$1 f_share=$2 f_network=$3
    shift 3
    for row in 4:ring 3:recursive_doubling 6:rabenseifner 2:nonoverlapping; do
        OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_allreduce_algorithm=${row%%:*}
        export OMPI_MCA_coll_tuned_use_dynamic_rules OMPI_MCA_coll_tuned_allreduce_algorithm
        measure "$f_ranks" "$f_share" "$f_network:${row#*:}" allreduce "$@" || exit 1
        unset OMPI_MCA_coll_tuned_use_dynamic_rules OMPI_MCA_coll_tuned_allreduce_algorithm
    done
}

sizes='8 16 32 64 128 256 512 1024 2048 4096 8192 16384 32768 65536 131072 262144 524288 1048576 2097152 4194304 8388608 16777216'
share=0.6 rank_sets='4 3 2' forced_sizes='4194304 16777216' delays='0 200 500 1000'
if [ -n "$quick" ]; then
    sizes='8 64 512 4096 16384 32768 65536 262144 524288 1048576 2097152 4194304 8388608'
    share=0.3 rank_sets=4 forced_sizes=4194304 delays='0 500'
fi
net_up 4 1gbit || exit 1
# shellcheck disable=SC2086
measure 2 $share 1gbit pingpong $sizes || exit 1
for ranks in $rank_sets; do
    # shellcheck disable=SC2086
    forced "$ranks" $share 1gbit $forced_sizes || exit 1
done
# the default decision of Open MPI
# shellcheck disable=SC2086
[ -n "$quick" ] || measure 4 $share 1gbit:chosen broadcast $sizes || exit 1
net_down
for delay in $delays; do
    net_up_delayed 4 1gbit "$delay" || { echo 'no switch in user space here (/dev/net/tun)' >&2; exit 0; }
    # shellcheck disable=SC2086
    measure 2 $share "delay=$delay" pingpong $sizes || exit 1
    if [ "$delay" = 500 ]; then # what "reduce, then broadcast" is made of changes with the size; here it is binomial trees
        export OMPI_MCA_coll_tuned_reduce_algorithm=5 OMPI_MCA_coll_tuned_bcast_algorithm=6
        forced 4 "$share" "delay=$delay" 512 4096 16384
    fi
    net_down
done
exit 0
