#!/bin/sh
# The leader of the fleet has a second address, as a web server's; another host takes it when this one fails:
#
#   selvedge-agent elect gateway --ttl 5s -- floating-address.sh 192.0.2.100/24 eth0
#
# The agent ends this program (SIGTERM) when it leads no more, or may not lead, and starts it again when the
# command does. For at most the time to live both hosts may have it after a host was suspended: the last one
# that announces it gets the traffic.
set -eu
address=$1
device=$2
# A test puts another program in place of `ip`.
ip=${IP:-ip}

off() {
    kill "$waits" 2>/dev/null || true
    "$ip" address del "$address" dev "$device"
    exit 0
}
waits=
trap off TERM INT
"$ip" address add "$address" dev "$device"
# Routers learn the new place of the address.
if command -v arping >/dev/null; then
    arping -c 3 -A -I "$device" "${address%/*}" >/dev/null 2>&1 || true
fi
while :; do
    sleep 3600 &
    waits=$!
    wait "$waits" || true
done
