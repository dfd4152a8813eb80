#!/usr/bin/env bash
# Makes a database of schema version 5, to test later migrations with, and
# records what ledgerd said about it before they ran.
#
# Usage: store/testdata/make-v5.sh CHECKOUT
#
# CHECKOUT is a checkout of a commit whose store/migrations end with 0005. The
# script builds ledgerd there and writes, next to itself:
#
#   v5.db.gz   the database
#   v5/        the answers, as JSON; v5/at is the time they were given at
#
# Run it again only if the data has to change: keys and times differ each time.
# It needs go, git, openssl, sqlite3, jq and gzip.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "${1:?name a checkout}" && pwd)
cosign=$checkout/ledger/testdata/cosign

last=$(basename "$(ls "$checkout"/store/migrations/*.sql | tail -n 1)")
if [[ $last != 0005_* ]]; then
	echo "make-v5.sh: the migrations of $checkout end with $last, not with 0005" >&2
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
# The settings of whoever runs this do not matter.
for name in $(compgen -e | grep -E '^(LEDGERD|GIT)_' || true); do unset "$name"; done
export LEDGERD_DATABASE=$work/v5.db LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=127.0.0.0/8
export HOME=$work GIT_CONFIG_NOSYSTEM=1
ledgerd() { "$work/ledgerd" "$@"; }
say() { ledgerd "$@" >>"$work/log" 2>&1 || { tail -n 3 "$work/log" >&2; return 1; }; }
id_of() { jq -r .id; }

# A small git repository. Dates are set, so its commits always have the same ids.
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
say org create acme
say org create globex
say repo create acme/api
say repo create acme/web --default-branch main
say repo create globex/tool

# Identities: bare keys, a certificate, a root. The key of ann is known to both
# orgs; mia has a second key under the same name, after the first was revoked.
bare() {
	openssl genpkey -algorithm "$2" ${3:+-pkeyopt "$3"} -out "$1.key" 2>/dev/null
	openssl pkey -in "$1.key" -pubout -out "$1.pub"
}
bare ann ED25519
bare mia EC ec_paramgen_curve:P-256
bare mia2 EC ec_paramgen_curve:P-384
bare gone RSA rsa_keygen_bits:2048
say keygen --dn 'cn=build,ou=ci,o=acme' --email build@acme.example --out build
say identity add --org acme --key ann.pub --dn 'cn=Ann,ou=web,o=acme' --email ann@acme.example
say identity add --org globex --key ann.pub --dn 'cn=Ann,ou=guests,o=globex'
mia=$(ledgerd identity add --org acme --key mia.pub --dn 'cn=Mia,ou=web,o=acme' --email mia@acme.example -o json | id_of)
gone=$(ledgerd identity add --org acme --key gone.pub --dn 'cn=gone,ou=web,o=acme' -o json | id_of)
say identity add --org acme --cert build.crt
say identity add --org acme --root "$cosign/ca.crt"
say identity add --org acme --key "$cosign/p256.pub" --dn 'cn=dev,ou=web,o=acme'
# A signer whom the root vouches for, of a name that differs from a registered
# one in case and blanks only.
bare MIA EC ec_paramgen_curve:P-256
printf 'extendedKeyUsage = codeSigning\nkeyUsage = digitalSignature\nsubjectAltName = email:mia@acme.example\n' >leaf.cnf
openssl req -new -key MIA.key -subj '/CN=MIA /OU=Web/O=ACME' -out MIA.csr
openssl x509 -req -in MIA.csr -CA "$cosign/ca.crt" -CAkey "$cosign/ca.key" -set_serial 77 -days 7000 -extfile leaf.cnf -out MIA.crt 2>/dev/null

# Tokens.
say token create --org acme --name ci --scope write
say token create --org acme --name dashboard --scope read --expires 3650d
old=$(ledgerd token create --org acme --name old --scope admin -o json | id_of)
say token revoke "$old" --org acme
say token create --org globex --name admin --scope admin

# Webhooks to a port that nobody listens on.
say webhook add acme/api --url http://127.0.0.1:9/ledger --events attestation,state,policy,radar --description 'everything'
say webhook add acme/web --url http://127.0.0.1:9/web --events state --active=false

# Policies: a second version for each repo. Ages are long enough never to run
# out, but for one.
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
	say attest "$1" --commit "$(sha "$2")" --predicate "$4" --status "$5" "${by[@]}"
}

# acme/api: commits of main, one deployed under the first policy.
for n in 1 2 3 4; do push acme/api "r$n" "release/$n"; done
signs acme/api r1 build test:go pass
# A server tries to deliver the first events until it gives up, then stops. The
# deliveries of later events stay pending.
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
signs acme/api r2 build test:go fail # and passes in the end
signs acme/api r2 leaf test:go pass
signs acme/api r2 build test:go pass
say policy apply acme/api -f api.yaml
signs acme/api r2 mia review:code pass
signs acme/api r2 leaf test:web pass
signs acme/api r2 build deploy:prod pass
signs acme/api r3 leaf test:go pass
signs acme/api r3 leaf test:web pass
signs acme/api r3 MIA review:code pass
signs acme/api r3 mia review:code pass
say identity revoke "$gone" --org acme
say identity revoke "$mia" --org acme
say identity add --org acme --key mia2.pub --dn 'cn=Mia,ou=web,o=acme' --email mia@acme.example
signs acme/api r3 mia2 review:docs pass
signs acme/api r4 build test:go fail
signs acme/api r4 build scan:licenses warn
# Branches that overlap; one is given up.
for branch in login logout limits cache given-up page title; do push acme/api "feature/$branch" "feature/$branch" main; done
(cd code && ledgerd commit withdraw acme/api --branch feature/given-up) >>log
signs acme/api feature/login build test:go pass
signs acme/api feature/login mia2 review:code pass
signs acme/api feature/logout leaf test:go pass
signs acme/api feature/logout mia2 review:code pass # kept back by the radar
signs acme/api feature/limits build test:go pass
signs acme/api feature/limits mia2 review:code pass # its author
signs acme/api feature/title leaf test:go skip

# acme/web: the envelopes of cosign, about a commit that is not registered, other
# people's predicates, and the same envelope twice.
say policy apply acme/web -f web.yaml
for file in v3-p256.bundle.json v3-x509.bundle.json v2-p256-provenance.dsse.json v3-p256-failed.dsse.json; do
	say attest acme/web --envelope "$cosign/$file"
done
for n in 2 3 4; do push acme/web "r$n" "release/$n"; done
foreign=$(jq -r '.subject[0].digest.gitCommit' "$cosign/test-passed.statement.json")
for file in test-passed provenance; do
	sed "s/$foreign/$(sha r3)/g" "$cosign/$file.statement.json" >statement.json
	say attest acme/web --statement statement.json --key build.key --cert build.crt
done
say attest acme/web --commit "$(sha r3)" --predicate test:web --status pass --key ann.key --annotation os=linux --out envelope.json
say attest acme/web --envelope envelope.json
say attest acme/web --envelope envelope.json
signs acme/web r3 ann review:code pass
signs acme/web r3 MIA review:code pass
signs acme/web r3 mia2 deploy:prod pass
signs acme/web r4 build test:web pass
signs acme/web r4 ann review:code pass
signs acme/web r4 MIA review:code pass
# Reviews count for a second, and then no more.
sed 's/threshold: 2/threshold: 2, max_age: 1s/' web.yaml >short.yaml
say policy apply acme/web -f short.yaml
signs acme/web r4 mia2 review:code pass
signs acme/web r4 ann review:late pass
sleep 2
say commit list acme/web

# globex/tool: the same commit and the same key as in acme.
push globex/tool r3 main
signs globex/tool r3 ann test:go pass

# What ledgerd says of all this.
rm -rf "$here/v5"
answer() {
	local file=$here/v5/$1
	shift
	mkdir -p "$(dirname "$file")"
	ledgerd "$@" -o json >"$file"
}
answer orgs.json org list
for org in acme globex; do
	for list in identity predicate token repo; do
		answer "$org/$list.json" "$list" list --org "$org"
	done
	# The command prints events as the stream has them, so the bodies that the
	# API answers with come from the database.
	sqlite3 -readonly v5.db "SELECT cast(body AS text) FROM events WHERE org_id = (SELECT id FROM orgs WHERE name = '$org') ORDER BY seq" >"$here/v5/$org/events.jsonl"
	answer "$org/stream.jsonl" events "$org" --types attestation,state,policy,radar
	for repo in $(jq -r '.[].name' "$here/v5/$org/repo.json"); do
		name=$org/$repo
		answer "$name/commits.json" commit list "$name"
		for commit in $(jq -r '.[].sha' "$here/v5/$name/commits.json"); do
			answer "$name/commits/$commit.json" commit show "$name" "$commit"
		done
		answer "$name/attestations.json" attestation list "$name"
		answer "$name/radar.json" radar "$name"
		answer "$name/policy.json" policy show "$name"
		answer "$name/policies.json" policy history "$name"
		answer "$name/webhooks.json" webhook list "$name"
		for hook in $(jq -r '.[].id' "$here/v5/$name/webhooks.json"); do
			answer "$name/deliveries/$hook.json" webhook deliveries "$name" "$hook"
		done
	done
done
date -u +%Y-%m-%dT%H:%M:%S.000Z >"$here/v5/at"

sqlite3 v5.db 'PRAGMA wal_checkpoint(TRUNCATE)' >>log
if [[ $(sqlite3 -readonly v5.db 'PRAGMA integrity_check; PRAGMA user_version' | tr '\n' ' ') != 'ok 5 ' ]]; then
	echo "make-v5.sh: the database is damaged or not of version 5" >&2
	exit 1
fi
gzip -9n <v5.db >"$here/v5.db.gz"
