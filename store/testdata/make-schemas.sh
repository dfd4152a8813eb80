#!/usr/bin/env bash
# Creates a small database of each earlier schema version, for the tests of migrations.
#
# Usage: store/testdata/make-schemas.sh [VERSION...]
#
# It builds ledgerd at the last commit of each version and writes schemas/vVERSION.db.gz
# next to itself. After a new migration, run it with the version before: its commit is
# added to the list below. Keys and times differ in each run, so the other files stay.
#
# Versions 2, 3, 6 and 16 have no commit of their own: 2 and 3 were changed before version
# 4 was added, 6 and 7 came together, and so did 16 and 17, before whose commit the file of
# 16 was made. Version 5 has more data, by make-v5.sh, and 19 has people with common names.
# It needs go, git, sqlite3 and gzip.
set -euo pipefail

declare -A commits=(
	[1]=c4158967ead988a91ffcb338bd0d629d2a1c51d0
	[4]=eedc4b79ccf3d5e9836d903f244254f5f5a6c785
	[7]=b35f718c069ecdf29e6cfce6fced42a7c2eafa81
	[8]=8ef10d83d9c26d6a8f73cf54f69775c890f78acb
	[9]=538cf1a679fc04f69b1e04a98a92ed107f3d1dd5
	[10]=da4edb14b45c1a4e456f678dca40776b5d2bcffa
	[11]=6d502af88f74a0d6557fd68e30afb4fe3beaafbf
	[12]=4ef3c3beeb0025b9fb2402779de4879c8b03aeaa
	[13]=4b627c86fce84d5667b6912f94ff435c7ba87ec1
	[14]=b2f0fc664ee1ae40db54aa0f63e20bea05285561
	[15]=ffde9bde8341cefcdbcd5bcc18db7030b396ce51
	[17]=d2cc62107ed0f87c23e8fe6824627458ee5b23de
	[18]=bb4775d1fa41e808aa72cace2ccd6d04e1edfba5
	[20]=1980aa0175a960378b958a42cc2faff44d93303c
	[21]=c51c4ba2cc3f28ffe2581d678d14845ccb9d4799
	[22]=292ff75e5a90d63928eaf284ffa901d83d22cada
	[23]=6d62869f274f3ea2011bb3d19937ef8c570964ab
)

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cleanup() {
	rm -rf "$work"
	git -C "$here" worktree prune
}
trap cleanup EXIT

# Ignore the caller's settings.
for name in $(compgen -e | grep -E '^(LEDGERD|GIT)_' || true); do unset "$name"; done
run() { "$program" "$@" >>"$work/log" 2>&1 || { tail -n 3 "$work/log" >&2; return 1; }; }

# code: a git repository with a release on main, and two branches that change one line.
git_as() {
	git -C "$work/code" -c user.name="$1" -c user.email="${1,,}@acme.example" "${@:2}"
}
git init -q -b main "$work/code"
seq 40 >"$work/code/api.go"
git_as Ann add .
git_as Ann commit -q -m Begin
echo release >>"$work/code/api.go"
git_as Ann commit -q -am Release
for branch in login logout; do
	git_as Bob checkout -q -b "$branch" main
	sed -i "10s/.*/$branch/" "$work/code/api.go"
	git_as Bob commit -q -am "Change $branch"
done

# signs REV PREDICATE STATUS
signs() {
	run attest acme/api --commit "$(git -C "$work/code" rev-parse "$1")" --predicate "$2" --status "$3" \
		--key "$work/ci.key" --cert "$work/ci.crt"
}

fill() {
	run org create acme
	run repo create acme/api
	run identity add --org acme --cert "$work/ci.crt"
	run token create --org acme --name ci --scope write
	cat >"$work/policy.yaml" <<-'YAML'
		requirements:
		  - {state: ATTESTED, predicate: "test:*"}
		  - {state: PROMOTABLE, predicate: "review:*"}
		  - {state: DEPLOYED, predicate: "deploy:prod"}
	YAML
	(cd "$work/code" && run commit push acme/api main --branch main --base main~1)
	signs main test:go pass
	run policy apply acme/api -f "$work/policy.yaml"
	for status in fail pass; do signs main review:code "$status"; done
	signs main deploy:prod pass
	if "$program" webhook --help >/dev/null 2>&1; then
		run webhook add acme/api --url http://127.0.0.1:9/ledger --events attestation,state
	fi
	for branch in login logout; do
		(cd "$work/code" && run commit push acme/api "$branch" --branch "$branch" --base main)
		signs "$branch" test:go warn
	done
	run repo create acme/web
	run attest acme/web --commit "$(git -C "$work/code" rev-parse main)" --predicate test:web --status skip \
		--key "$work/ci.key" --cert "$work/ci.crt"
}

mkdir -p "$here/schemas"
versions=("$@")
if ((${#versions[@]} == 0)); then mapfile -t versions < <(printf '%s\n' "${!commits[@]}" | sort -n); fi
for version in "${versions[@]}"; do
	git -C "$here" worktree add -q --detach "$work/$version" "${commits[$version]}"
	(cd "$work/$version" && go build -o "$work/ledgerd$version" .)
	program=$work/ledgerd$version
	export LEDGERD_DATABASE=$work/v$version.db LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=127.0.0.0/8
	rm -f "$work/ci.key" "$work/ci.crt"
	run keygen --dn 'cn=ci,ou=build,o=acme' --out "$work/ci"
	fill
	sqlite3 "$LEDGERD_DATABASE" 'PRAGMA wal_checkpoint(TRUNCATE)' >>"$work/log"
	if [[ $(sqlite3 "$LEDGERD_DATABASE" 'PRAGMA integrity_check; PRAGMA user_version' | tr '\n' ' ') != "ok $version " ]]; then
		echo "make-schemas.sh: the database is damaged or does not have schema version $version" >&2
		exit 1
	fi
	gzip -9n <"$LEDGERD_DATABASE" >"$here/schemas/v$version.db.gz"
done
