#!/bin/sh
# Runs a job once in the fleet for each occurrence, from the crontab of every host:
#
#   0 2 * * *  once.sh backup "$(date -u +\%FT\%H)" /usr/local/bin/backup
#
# The entry of the job has the last occurrence that a host has begun. The host that puts a later one there
# runs the job. A host that dies with it leaves the occurrence out: it is done at most once.
set -eu
job=$1
occurrence=$2
shift 2
agent=${SELVEDGE_AGENT_PROGRAM:-selvedge-agent}

version=$("$agent" map get cron "$job" --version)
if [ "$version" != 0 ]; then
    last=$("$agent" map get cron "$job")
    # As texts: times as above sort by age.
    if expr "x$last" '>=' "x$occurrence" >/dev/null; then
        exit 0
    fi
fi
status=0
why=$("$agent" map cas cron "$job" "$version" "$occurrence" 2>&1) || status=$?
case $status in
0) exec "$@" ;;
3) exit 0 ;; # Another host was faster.
*)
    echo "$why" >&2
    exit "$status"
    ;;
esac
