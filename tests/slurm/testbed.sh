#!/bin/bash
# testbed.sh start DIR NODES | stop DIR | restart DIR DAEMON - a real Slurm on this machine: slurmctld, NODES slurmd, slurmdbd with MariaDB, munge;
# all of it in DIR, none of it known to the system. Needs root. After start: export SLURM_CONF=DIR/slurm.conf.
# What is not obvious below was found by failing without it.
set -eu
export PATH=$PATH:/usr/sbin:/sbin

die() { echo "testbed: $*" >&2; exit 1; }
wait_for() { # wait_for SECONDS COMMAND...
    local n=$(($1 * 10))
    shift
    while ! "$@" > /dev/null 2>&1; do
        n=$((n - 1))
        [ $n -gt 0 ] || return 1
        sleep 0.1
    done
}
free_port() { python3 "$(dirname "$0")/../free_port.py"; }

write_conf() { # DIR NODES
    local d=$1 n=$2 host i
    host=$(hostname -s)
    cat > "$d/slurm.conf" << EOF
ClusterName=dlmodel
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$d/munge.sock
CryptoType=crypto/munge
StateSaveLocation=$d/state
SlurmdSpoolDir=$d/spool.%n
TmpFS=$d/tmp.%n
SlurmctldPidFile=$d/slurmctld.pid
SlurmdPidFile=$d/slurmd.%n.pid
SlurmctldLogFile=$d/slurmctld.log
SlurmdLogFile=$d/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=10
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=${SLURMD_TIMEOUT:-15}
KillWait=3
InactiveLimit=0
SlurmdParameters=config_overrides
MailProg=/bin/true
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$3
AccountingStoragePass=$d/munge.sock
EOF
    for i in $(seq 1 "$n"); do
        mkdir -p "$d/tmp.node$i" "$d/spool.node$i"
        echo "NodeName=node$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=4 RealMemory=4000 State=UNKNOWN" >> "$d/slurm.conf"
    done
    echo "PartitionName=bed Nodes=node[1-$n] Default=YES MaxTime=60 State=UP OverSubscribe=NO" >> "$d/slurm.conf"
    echo "CgroupAutomount=no" > "$d/cgroup.conf"
    cat > "$d/slurmdbd.conf" << EOF
AuthType=auth/munge
AuthInfo=socket=$d/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$3
SlurmUser=root
LogFile=$d/slurmdbd.log
PidFile=$d/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$4
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
EOF
    chmod 600 "$d/slurmdbd.conf"
}

daemon() { # daemon DIR NAME: slurmctld, slurmdbd, nodeN
    export SLURM_CONF=$1/slurm.conf
    case $2 in
    slurmctld) slurmctld -f "$1/slurm.conf" ;;
    slurmdbd) slurmdbd ;;
    node*) taskset -c "$(core_of "${2#node}")" slurmd -N "$2" -f "$1/slurm.conf" ;;
    esac
}
# A node is one core: its tasks inherit it. Unbound, tasks that wake each other over loopback meet on one core while another is idle.
core_of() { # core_of NUMBER: one of the cores that may be used, round and round
    local cores
    read -r -a cores <<< "$(taskset -pc $$ | sed 's/.*: //' | tr ',' '\n' | awk -F- '{ for (i = $1; i <= (NF > 1 ? $2 : $1); i++) printf "%d ", i }')"
    echo "${cores[$((($1 - 1) % ${#cores[@]}))]}"
}

start() {
    local d=$1 n=$2 i sql
    mkdir -p "$d/state"
    d=$(cd "$d" && pwd)
    chmod 755 "$d"
    sql=$(free_port)
    write_conf "$d" "$n" "$(free_port)" "$sql"
    export SLURM_CONF=$d/slurm.conf
    dd if=/dev/urandom of="$d/munge.key" bs=1024 count=1 status=none
    chmod 600 "$d/munge.key"
    munged --force --key-file="$d/munge.key" --socket="$d/munge.sock" --pid-file="$d/munged.pid" --log-file="$d/munged.log" --seed-file="$d/munge.seed" ||
        die "munged did not start"
    mysql_install_db --no-defaults --datadir="$d/mysql" --user=root --auth-root-authentication-method=normal > "$d/mysql_install.log" 2>&1 ||
        die "MariaDB could not make its tables: $(grep -i error "$d/mysql_install.log" | tail -n 2 | tr '\n' ';')$(df -h "$d" | tail -n 1)"
    mariadbd --no-defaults --datadir="$d/mysql" --user=root --bind-address=127.0.0.1 --port="$sql" --socket="$d/mysql.sock" --pid-file="$d/mariadbd.pid" \
        --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 > "$d/mariadbd.log" 2>&1 < /dev/null &
    wait_for 60 mariadb --no-defaults -S "$d/mysql.sock" -e 'select 1' || die "MariaDB did not start"
    mariadb --no-defaults -S "$d/mysql.sock" -e "create database slurm_acct_db;
        create user slurm@'127.0.0.1' identified by 'slurm'; create user slurm@localhost identified by 'slurm';
        grant all on slurm_acct_db.* to slurm@'127.0.0.1'; grant all on slurm_acct_db.* to slurm@localhost;"
    daemon "$d" slurmdbd > "$d/start.log" 2>&1
    wait_for 60 sacctmgr -n list cluster || die "slurmdbd did not start"
    sacctmgr -i add cluster dlmodel > /dev/null 2>&1 || true
    daemon "$d" slurmctld >> "$d/start.log" 2>&1
    wait_for 60 scontrol ping || die "slurmctld did not start"
    for i in $(seq 1 "$n"); do daemon "$d" "node$i" >> "$d/start.log" 2>&1; done
    # shellcheck disable=SC2016
    wait_for 60 sh -c 'test "$(sinfo -h -N -t idle -o %N | wc -l)" -ge "$1"' sh "$n" || die "the nodes did not come: $(sinfo -h -N 2>&1 | tr '\n' ';')"
}

end() { # end PIDFILE
    local p
    [ -s "$1" ] || return 0
    p=$(cat "$1")
    kill "$p" 2> /dev/null || return 0
    # shellcheck disable=SC2016
    wait_for 15 sh -c '! kill -0 "$1"' sh "$p" || kill -9 "$p" 2> /dev/null || true
}

# Only processes whose pid files are in DIR, and steps that they left.
stop() {
    local d=$1 f
    d=$(cd "$d" && pwd)
    export SLURM_CONF=$d/slurm.conf
    timeout 10 scancel --me --state=PENDING > /dev/null 2>&1 || true
    timeout 10 scancel --me --full > /dev/null 2>&1 || true
    for f in "$d"/slurmd.*.pid; do end "$f" & done # each waits for its last messages
    wait
    for f in "$d/slurmctld.pid" "$d/slurmdbd.pid" "$d/mariadbd.pid" "$d/munged.pid"; do end "$f"; done
}

restart() { # restart DIR DAEMON
    local d
    d=$(cd "$1" && pwd)
    case $2 in
    node*) end "$d/slurmd.$2.pid" ;;
    *) end "$d/$2.pid" ;;
    esac
    daemon "$d" "$2"
}

down() { # down DIR DAEMON
    local d
    d=$(cd "$1" && pwd)
    end "$d/$2.pid"
}
crash() { kill -9 "$(cat "$1/slurmd.$2.pid")"; } # crash DIR NODE: its slurmd dies; Slurm gives the node up when it has been silent for a while
"$@"
