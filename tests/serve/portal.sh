#!/bin/sh
# portal.sh - the files of packaging/ood as Open OnDemand reads them: YAML, ERB with what the portal gives, shell that starts the service.
# "ok NAME", "not ok NAME" lines. Open OnDemand itself is not needed: its find_port and create_passwd are stood in for.
set -u
at=packaging/ood work=$SCRATCH/portal
tell() { if [ "$1" -eq 0 ]; then echo "ok serve: portal: $2"; else echo "not ok serve: portal: $2"; fi; }
if ! command -v ruby > /dev/null 2>&1; then
    echo 'skip serve: portal: no ruby (Debian package ruby)'
    exit 0
fi
rm -rf "$work"
mkdir -p "$work/results of mine"
render() { # render FILE: with what the user and the session gave
    ruby -rerb -rostruct -rshellwords -e '
        context = OpenStruct.new(measured: ARGV[1]); host = "127.0.0.1"; port = 18099; password = "a-token-of-32-characters-or-more"
        puts ERB.new(File.read(ARGV[0]), trim_mode: "-").result(binding)' "$1" "$work/results of mine"
}
ruby -ryaml -e 'm = YAML.load_file(ARGV[0]); exit(m["role"] == "batch_connect" && m["name"] ? 0 : 1)' $at/manifest.yml
tell $? 'manifest.yml'
ruby -ryaml -e 'f = YAML.load_file(ARGV[0]); exit(f["cluster"] && f["form"].all? { |k| f["attributes"].key?(k) } ? 0 : 1)' $at/form.yml
tell $? 'form.yml: each field is described'
render $at/submit.yml.erb | ruby -ryaml -e 's = YAML.load(STDIN.read); exit(s["batch_connect"]["template"] == "basic" && s["script"]["native"].all?(String) ? 0 : 1)'
tell $? 'submit.yml.erb'
render $at/view.html.erb | grep -q 'href="/rnode/127.0.0.1/18099/#token=a-token-of-32-characters-or-more"'
tell $? 'view.html.erb leads to the session'
render $at/template/before.sh.erb > "$work/before.sh"
render $at/template/script.sh.erb > "$work/script.sh"
bash -n "$work/before.sh" && bash -n "$work/script.sh"
tell $? 'the scripts are shell'
port=$(python3 tests/free_port.py)
mkdir "$work/bin"
ln -s "$(command -v "$DLMODEL" || echo "$PWD/dlmodel")" "$work/bin/dlmodel"
cat > "$work/session.sh" << 'T'
find_port() { echo "$given_port"; }
create_passwd() { head -c 400 /dev/urandom | tr -dc 'a-zA-Z0-9' | head -c "$1"; }
host=127.0.0.1
. ./before.sh
exec bash ./script.sh
T
(cd "$work" && exec env PATH="$work/bin:$PATH" DLMODEL_DATA="${DLMODEL_DATA:-$OLDPWD/data}" given_port="$port" bash ./session.sh > said 2>&1) &
session=$!
good=1
for _ in $(seq 1 400); do
    sleep 0.3
    [ "$(python3 - "$port" "$work/tokens" << 'T' 2> /dev/null
import http.client, sys
token = open(sys.argv[2]).read().strip()
got = []
for headers in ({}, {"Authorization": "Bearer " + token}):
    c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=5)
    c.request("GET", "/v1/systems", headers=headers)
    got.append(c.getresponse().status)
print(*got)
T
)" = '401 200' ] && good=0 && break
done
tell $good 'the session answers its user alone'
[ $good -eq 0 ] || cat "$work/said"
[ "$(stat -c %a "$work/tokens" 2> /dev/null)" = 600 ]
tell $? 'its token is its own'
kill "$session" 2> /dev/null
wait "$session" 2> /dev/null
exit 0
