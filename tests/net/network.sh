# shellcheck shell=sh
# network.sh - a network to test on: hosts are network namespaces on this machine. A script that sources this file can
#
#   net_why                        print why no such network is possible here; nothing if it is
#   net_up N RATE                  hosts $NET1..N on a bridge, each link shaped to RATE ("1gbit") by token buckets
#   net_up_delayed N RATE US       the same behind a switch in user space that delays frames by US microseconds
#   net_run COMMAND...             run a command on host 1, with Open MPI set up to reach the others
#   net_hosts N                    their names, one per line
#   net_down                       remove it; also done when the script ends
#
# MTU 9000: with 1500, the frames' own 66 of 1514 bytes would make payload 4.4 % slower than the rate that was set.
# A burst of 32 KiB: a larger one lets that much through at once after each pause, which shows in ping-pong but not in a ring.
# At most 64 KiB of a connection wait in a token bucket (tcp_limit_output_bytes), and Open MPI sends what it has instead of asking
# for remote writes (btl_tcp_flags): else acknowledgements and requests wait behind a megabyte of data, and the two directions of a
# link alternate, which no link model describes. (Real networks have queues that keep flows apart; this kernel may not.) For the
# same reason Open MPI's socket buffers are 128 KiB ($net_buffer), as they were before its release 4.0.
NET=dlm$$
net_dir=$(cd "${DLMODEL_ROOT:-.}/tests/net" && pwd)
net_count=0
net_scratch=${SCRATCH:-${TMPDIR:-/tmp}}
NET_BURST=${NET_BURST:-32kb}
net_buffer=131072

net_why() {
    for tool in ip tc nsenter unshare mpirun; do
        command -v "$tool" > /dev/null 2>&1 || { echo "no $tool here (packages iproute2, util-linux, openmpi-bin)"; return; }
    done
    [ "$(id -u)" -eq 0 ] || { echo 'only root may make network namespaces'; return; }
    if ! ip netns add "$NET-try" 2> /dev/null; then
        echo 'this machine (a container?) does not let us make network namespaces'
        return
    fi
    words=$({ ip link add "${NET}v" netns "$NET-try" type veth peer name "${NET}w" netns "$NET-try" &&
        ip -n "$NET-try" link add br0 type bridge && tc -n "$NET-try" qdisc add dev "${NET}v" root tbf rate 1gbit burst 32kb latency 50ms &&
        nsenter --net="/run/netns/$NET-try" unshare -u true; } 2>&1) || echo "namespaces, but no veth, bridge, token bucket or UTS namespace: $words" | head -n 1
    ip netns del "$NET-try"
}

net_host() { # net_host I RATE: address and shaping of eth0, which is there
    ip -n "$NET$1" link set lo up
    ip -n "$NET$1" link set eth0 mtu 9000 address "$(printf '02:00:00:00:00:%02x' "$1")"
    ip -n "$NET$1" addr add "10.77.0.$1/24" dev eth0
    ip -n "$NET$1" link set eth0 up
    nsenter --net="/run/netns/$NET$1" sh -c 'cd /proc/sys/net/ipv4 && echo reno > tcp_congestion_control && echo 65536 > tcp_limit_output_bytes &&
        echo 0 > tcp_slow_start_after_idle' || return 1
    tc -n "$NET$1" qdisc add dev eth0 root tbf rate "$2" burst "$NET_BURST" latency 50ms
}

net_up() {
    net_count=$1
    ip netns add "$NET-sw" && ip -n "$NET-sw" link add br0 type bridge && ip -n "$NET-sw" link set br0 mtu 9000 up || return 1
    i=0
    while [ $i -lt "$1" ]; do
        i=$((i + 1))
        ip netns add "$NET$i" && ip link add eth0 netns "$NET$i" type veth peer name "p$i" netns "$NET-sw" || return 1
        ip -n "$NET-sw" link set "p$i" mtu 9000 master br0 up
        net_host $i "$2" || return 1
        # what arrives is shaped too, or two senders could fill one receiver at twice the rate
        tc -n "$NET-sw" qdisc add dev "p$i" root tbf rate "$2" burst "$NET_BURST" latency 50ms || return 1
    done
}

net_up_delayed() {
    net_count=$1
    net_buffer=0 # as the kernel sees fit: rate times delay must be under way
    ${CC:-gcc} -O2 -o "$net_scratch/delay_switch" "$net_dir/delay_switch.c" || return 1
    ip netns add "$NET-sw" || return 1
    rm -f "$net_scratch/switch.log"
    real_time=
    chrt -f 10 true 2> /dev/null && real_time='chrt -f 10' # it must not wait for a core
    # shellcheck disable=SC2086
    nsenter --net="/run/netns/$NET-sw" nice -n -19 $real_time "$net_scratch/delay_switch" "$1" "$3" > "$net_scratch/switch.log" 2>&1 &
    net_switch=$!
    tries=0
    until grep -q ready "$net_scratch/switch.log" 2> /dev/null; do
        tries=$((tries + 1))
        if [ $tries -gt 50 ]; then
            head -n 2 "$net_scratch/switch.log" >&2
            return 1
        fi
        sleep 0.1
    done
    i=0
    while [ $i -lt "$1" ]; do
        i=$((i + 1))
        ip netns add "$NET$i" && ip -n "$NET-sw" link set "t$i" netns "$NET$i" name eth0 || return 1
        net_host $i "$2" || return 1
    done
}

net_down() {
    [ -n "${net_switch-}" ] && kill "$net_switch" 2> /dev/null && wait "$net_switch" 2> /dev/null
    net_switch=
    while [ "$net_count" -gt 0 ]; do
        ip netns del "$NET$net_count" 2> /dev/null
        net_count=$((net_count - 1))
    done
    ip netns del "$NET-sw" 2> /dev/null
    return 0
}
trap net_down EXIT

net_hosts() {
    i=0
    while [ $i -lt "$1" ]; do
        i=$((i + 1))
        echo "$NET$i"
    done
}

# At a higher priority than other work, if allowed: a rank that waits for a core looks like a slow network. (A session of its own is
# a group of its own to the scheduler, whose priority counts against the other groups.)
net_first='echo -20 > /proc/self/autogroup 2> /dev/null; exec nice -n -20 "$@"'

# Without --bind-to none every host's ranks share core 0; without yielding, a rank that waits keeps the core of another.
net_run() {
    nsenter --net="/run/netns/${NET}1" unshare -u env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=rsh \
        OMPI_MCA_plm_rsh_agent="$net_dir/agent.sh" OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_flags=1 OMPI_MCA_btl_tcp_sndbuf=$net_buffer OMPI_MCA_btl_tcp_rcvbuf=$net_buffer \
        OMPI_MCA_oob_tcp_if_include=eth0 \
        OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none \
        setsid -w sh -c "hostname \"\$1\"; shift; $net_first" sh "${NET}1" "$@"
}
