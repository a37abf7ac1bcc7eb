#!/bin/sh
# agent.sh [OPTIONS] HOST COMMAND... - Open MPI's launch agent (plm_rsh_agent) for the test network: a host is a network namespace,
# with a host name of its own, so that MPI treats it as another machine.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec nsenter --net="/run/netns/$host" unshare -u sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" "$@"
