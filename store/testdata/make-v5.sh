#!/usr/bin/env bash
# Creates a database of schema version 5 to test later migrations, and records what
# ledgerd prints for it before they run.
#
# Usage: store/testdata/make-v5.sh CHECKOUT
#
# CHECKOUT is a checkout of a commit whose last migration in store/migrations is 0005.
# The script builds ledgerd there and writes to its own directory:
#
#   v5.db.gz   the database
#   v5/        what ledgerd prints, as JSON; v5/at is the time of the output
#
# Run it again only if the data must change: keys and times differ in each run.
# It needs go, git, openssl, sqlite3, jq and gzip.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "${1:?CHECKOUT is missing}" && pwd)
cosign=$checkout/ledger/testdata/cosign

last=$(basename "$(ls "$checkout"/store/migrations/*.sql | tail -n 1)")
if [[ $last != 0005_* ]]; then
	echo "make-v5.sh: the last migration of $checkout is $last: use a checkout that ends with 0005" >&2
	exit 1
fi

work=$(mktemp -d)
server=
cleanup() {
	if [[ -n $server ]]; then kill "$server" 2>/dev/null || true; fi
	rm -rf "$work"
}
trap cleanup EXIT

(cd "$checkout" && go build -o "$work/ledgerd" .)
cd "$work"
# Ignore the caller's settings.
for name in $(compgen -e | grep -E '^(LEDGERD|GIT)_' || true); do unset "$name"; done
export LEDGERD_DATABASE=$work/v5.db LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=127.0.0.0/8
export HOME=$work GIT_CONFIG_NOSYSTEM=1
ledgerd() { "$work/ledgerd" "$@"; }
run() { ledgerd "$@" >>"$work/log" 2>&1 || { tail -n 3 "$work/log" >&2; return 1; }; }
id_of() { jq -r .id; }

# A small git repository. Its dates are fixed, so its commits always have the same ids.
git init -q -b main code
git_as() {
	local name=$1 when=$2
	shift 2
	GIT_AUTHOR_NAME=$name GIT_AUTHOR_EMAIL=${name,,}@acme.example GIT_AUTHOR_DATE="2026-11-20T$when:00Z" \
		GIT_COMMITTER_NAME=$name GIT_COMMITTER_EMAIL=${name,,}@acme.example GIT_COMMITTER_DATE="2026-11-20T$when:00Z" \
		git -C code "$@"
}
lines() { seq -f "$1 line %g" 40; }
mkdir -p code/server code/web
lines api >code/server/api.go
lines page >code/web/page.html
git_as Ann 09:00 add .
git_as Ann 09:00 commit -q -m "Begin"
# change BRANCH AUTHOR TIME FILE LINE: a branch from main with one changed line.
change() {
	git -C code checkout -q -B "$1" main
	if [[ -f code/$4 ]]; then sed -i "$5s|.*|$1 was here|" "code/$4"; else lines "$1" >"code/$4"; fi
	git_as "$2" "$3" add .
	git_as "$2" "$3" commit -q -m "Change $4 on $1"
}
for n in 1 2 3 4; do
	git -C code checkout -q main
	sed -i "$((n * 3))s/.*/release $n/" code/web/page.html
	git_as Ann "09:0$n" commit -q -am "Release $n"
	git -C code tag "r$n"
done
change feature/login Ann 10:00 server/api.go 10
change feature/logout Bob 10:01 server/api.go 10
change feature/limits Mia 10:02 server/api.go 30
change feature/cache Bob 10:03 server/cache.go 1
change feature/given-up Ann 10:04 server/api.go 11
change feature/page Bob 10:05 web/page.html 33
change feature/title Mia 10:06 web/page.html 33
sha() { git -C code rev-parse "$1"; }

# Orgs and repos.
run org create acme
run org create globex
run repo create acme/api
run repo create acme/web --default-branch main
run repo create globex/tool

# Identities: bare keys, a certificate, a root. Both orgs trust the key of ann. mia gets
# a second key with the same name after the first is revoked.
bare() {
	openssl genpkey -algorithm "$2" ${3:+-pkeyopt "$3"} -out "$1.key" 2>/dev/null
	openssl pkey -in "$1.key" -pubout -out "$1.pub"
}
bare ann ED25519
bare mia EC ec_paramgen_curve:P-256
bare mia2 EC ec_paramgen_curve:P-384
bare gone RSA rsa_keygen_bits:2048
run keygen --dn 'cn=build,ou=ci,o=acme' --email build@acme.example --out build
run identity add --org acme --key ann.pub --dn 'cn=Ann,ou=web,o=acme' --email ann@acme.example
run identity add --org globex --key ann.pub --dn 'cn=Ann,ou=guests,o=globex'
mia=$(ledgerd identity add --org acme --key mia.pub --dn 'cn=Mia,ou=web,o=acme' --email mia@acme.example -o json | id_of)
gone=$(ledgerd identity add --org acme --key gone.pub --dn 'cn=gone,ou=web,o=acme' -o json | id_of)
run identity add --org acme --cert build.crt
run identity add --org acme --root "$cosign/ca.crt"
run identity add --org acme --key "$cosign/p256.pub" --dn 'cn=dev,ou=web,o=acme'
# A signer with a certificate of the root. Its name differs from a registered one only in
# case and spaces.
bare MIA EC ec_paramgen_curve:P-256
printf 'extendedKeyUsage = codeSigning\nkeyUsage = digitalSignature\nsubjectAltName = email:mia@acme.example\n' >leaf.cnf
openssl req -new -key MIA.key -subj '/CN=MIA /OU=Web/O=ACME' -out MIA.csr
openssl x509 -req -in MIA.csr -CA "$cosign/ca.crt" -CAkey "$cosign/ca.key" -set_serial 77 -days 7000 -extfile leaf.cnf -out MIA.crt 2>/dev/null

# Tokens.
run token create --org acme --name ci --scope write
run token create --org acme --name dashboard --scope read --expires 3650d
old=$(ledgerd token create --org acme --name old --scope admin -o json | id_of)
run token revoke "$old" --org acme
run token create --org globex --name admin --scope admin

# Webhooks to a port on which nothing listens.
run webhook add acme/api --url http://127.0.0.1:9/ledger --events attestation,state,policy,radar --description 'everything'
run webhook add acme/web --url http://127.0.0.1:9/web --events state --active=false

# Policies: a second version for each repo. All ages but one are long enough never to
# expire.
cat >api.yaml <<'YAML'
requirements:
  - {state: ATTESTED, predicate: "test:*", max_age: 3650d}
  - {state: PROMOTABLE, predicate: "review:*", exclude_author: true}
  - {state: PROMOTABLE, predicate: "test:web", paths: ["web/**"], signers: ["ou=ci,o=acme", "ou=build,o=acme"]}
  - {state: DEPLOYED, predicate: "deploy:prod", signers: ["ou=ci,o=acme"]}
radar: {block: HIGH, notify: LOW, max_age: 3650d}
YAML
cat >web.yaml <<'YAML'
requirements:
  - {state: ATTESTED, predicate: "test:*"}
  - {state: PROMOTABLE, predicate: "review:*", threshold: 2}
  - {state: DEPLOYED, predicate: "deploy:prod"}
radar: {max_age: 3650d}
YAML

# push REPO REV [BRANCH]
push() { (cd code && ledgerd commit push "$1" "$2" --base "${4:-main~4}" --branch "$3") >>log; }
# signs REPO REV SIGNER PREDICATE STATUS
signs() {
	local by=(--key "$3.key")
	case $3 in
	leaf) by=(--key "$cosign/leaf.key" --cert "$cosign/leaf.crt") ;;
	build | MIA) by+=(--cert "$3.crt") ;;
	esac
	run attest "$1" --commit "$(sha "$2")" --predicate "$4" --status "$5" "${by[@]}"
}

# acme/api: commits of main, one deployed under the first policy.
for n in 1 2 3 4; do push acme/api "r$n" "release/$n"; done
signs acme/api r1 build test:go pass
# The server runs until the first deliveries have failed. The deliveries of later events
# stay pending.
"$work/ledgerd" serve --listen 127.0.0.1:0 --webhooks-schedule 1s >>log 2>>serve.log &
server=$!
for _ in $(seq 60); do
	if [[ $(sqlite3 -readonly v5.db "SELECT count(*) FROM outbox WHERE status = 'failed'") != 0 ]]; then break; fi
	sleep 0.5
done
if [[ $(sqlite3 -readonly v5.db "SELECT count(*) FROM outbox WHERE status = 'failed'") == 0 ]]; then
	echo "make-v5.sh: no delivery has failed" >&2
	exit 1
fi
kill "$server" && wait "$server"
server=
signs acme/api r1 gone review:code pass
signs acme/api r1 build deploy:prod pass
signs acme/api r2 build test:go fail # and then passes
signs acme/api r2 leaf test:go pass
signs acme/api r2 build test:go pass
run policy apply acme/api -f api.yaml
signs acme/api r2 mia review:code pass
signs acme/api r2 leaf test:web pass
signs acme/api r2 build deploy:prod pass
signs acme/api r3 leaf test:go pass
signs acme/api r3 leaf test:web pass
signs acme/api r3 MIA review:code pass
signs acme/api r3 mia review:code pass
run identity revoke "$gone" --org acme
run identity revoke "$mia" --org acme
run identity add --org acme --key mia2.pub --dn 'cn=Mia,ou=web,o=acme' --email mia@acme.example
signs acme/api r3 mia2 review:docs pass
signs acme/api r4 build test:go fail
signs acme/api r4 build scan:licenses warn
# Branches that overlap. One is withdrawn.
for branch in login logout limits cache given-up page title; do push acme/api "feature/$branch" "feature/$branch" main; done
(cd code && ledgerd commit withdraw acme/api --branch feature/given-up) >>log
signs acme/api feature/login build test:go pass
signs acme/api feature/login mia2 review:code pass
signs acme/api feature/logout leaf test:go pass
signs acme/api feature/logout mia2 review:code pass # blocked by the radar
signs acme/api feature/limits build test:go pass
signs acme/api feature/limits mia2 review:code pass # by its author
signs acme/api feature/title leaf test:go skip

# acme/web: envelopes of cosign about a commit that is not registered, foreign predicate
# types, and the same envelope twice.
run policy apply acme/web -f web.yaml
for file in v3-p256.bundle.json v3-x509.bundle.json v2-p256-provenance.dsse.json v3-p256-failed.dsse.json; do
	run attest acme/web --envelope "$cosign/$file"
done
for n in 2 3 4; do push acme/web "r$n" "release/$n"; done
foreign=$(jq -r '.subject[0].digest.gitCommit' "$cosign/test-passed.statement.json")
for file in test-passed provenance; do
	sed "s/$foreign/$(sha r3)/g" "$cosign/$file.statement.json" >statement.json
	run attest acme/web --statement statement.json --key build.key --cert build.crt
done
run attest acme/web --commit "$(sha r3)" --predicate test:web --status pass --key ann.key --annotation os=linux --out envelope.json
run attest acme/web --envelope envelope.json
run attest acme/web --envelope envelope.json
signs acme/web r3 ann review:code pass
signs acme/web r3 MIA review:code pass
signs acme/web r3 mia2 deploy:prod pass
signs acme/web r4 build test:web pass
signs acme/web r4 ann review:code pass
signs acme/web r4 MIA review:code pass
# Reviews expire after a second.
sed 's/threshold: 2/threshold: 2, max_age: 1s/' web.yaml >short.yaml
run policy apply acme/web -f short.yaml
signs acme/web r4 mia2 review:code pass
signs acme/web r4 ann review:late pass
sleep 2
run commit list acme/web

# globex/tool: the same commit and the same key as in acme.
push globex/tool r3 main
signs globex/tool r3 ann test:go pass

# What ledgerd prints.
rm -rf "$here/v5"
dump() {
	local file=$here/v5/$1
	shift
	mkdir -p "$(dirname "$file")"
	ledgerd "$@" -o json >"$file"
}
dump orgs.json org list
for org in acme globex; do
	for list in identity predicate token repo; do
		dump "$org/$list.json" "$list" list --org "$org"
	done
	# The command prints events in the form of the stream. The bodies that the API returns
	# are in the database.
	sqlite3 -readonly v5.db "SELECT cast(body AS text) FROM events WHERE org_id = (SELECT id FROM orgs WHERE name = '$org') ORDER BY seq" >"$here/v5/$org/events.jsonl"
	dump "$org/stream.jsonl" events "$org" --types attestation,state,policy,radar
	for repo in $(jq -r '.[].name' "$here/v5/$org/repo.json"); do
		name=$org/$repo
		dump "$name/commits.json" commit list "$name"
		for commit in $(jq -r '.[].sha' "$here/v5/$name/commits.json"); do
			dump "$name/commits/$commit.json" commit show "$name" "$commit"
		done
		dump "$name/attestations.json" attestation list "$name"
		dump "$name/radar.json" radar "$name"
		dump "$name/policy.json" policy show "$name"
		dump "$name/policies.json" policy history "$name"
		dump "$name/webhooks.json" webhook list "$name"
		for hook in $(jq -r '.[].id' "$here/v5/$name/webhooks.json"); do
			dump "$name/deliveries/$hook.json" webhook deliveries "$name" "$hook"
		done
	done
done
date -u +%Y-%m-%dT%H:%M:%S.000Z >"$here/v5/at"

sqlite3 v5.db 'PRAGMA wal_checkpoint(TRUNCATE)' >>log
if [[ $(sqlite3 -readonly v5.db 'PRAGMA integrity_check; PRAGMA user_version' | tr '\n' ' ') != 'ok 5 ' ]]; then
	echo "make-v5.sh: the database is damaged or does not have schema version 5" >&2
	exit 1
fi
gzip -9n <v5.db >"$here/v5.db.gz"
