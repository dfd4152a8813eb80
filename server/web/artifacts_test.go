package web_test

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// The page of an artifact shows the commits that it was built from, their states, and whose
// links do not count.
func TestArtifactPages(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=x,o=acme")
	w := e.signIn(e.reader)
	const path = "/orgs/acme/artifacts"
	digest := "sha256:" + strings.Repeat("2b", 32)
	w.get(path).want(200).has("Digest, or image with digest", "Find commits")
	w.get(path + "?digest=latest").want(200).has("\"latest\" is not a digest")
	w.get(path + "?digest=ghcr.io%2Facme%2Fapi%40" + digest).want(303)
	w.get(path + "/" + digest).want(200).has("Unknown: no statement links it with a commit")
	w.get(path + "/latest").want(422)

	payload, err := attestation.NewStatement("git+https://git.example/acme/api", commitID(1), attestation.ResultPredicate{
		Predicate: "build:image", Result: ledger.Result{Status: ledger.Pass}})
	must.OK(t, err)
	named := strings.Replace(string(payload), `"subject":[`, `"subject":[{"digest":{"sha256":"`+digest[7:]+`"}},`, 1)
	e.policy(`{"requirements":[{"state":"PROMOTABLE","predicate":"review:*"}],"artifacts":{"signers":["cn=ci"]}}`)
	e.sign(ci, named)
	w.get(path+"/"+digest).want(200).has("Attested is the least state of the commits whose link counts.",
		"Attested api@ "+commitID(1)[:12]+" , linked by build:image of ci", "ledgerd gate acme --artifact "+digest)

	e.policy(`{"requirements":[{"state":"PROMOTABLE","predicate":"review:*"}],"artifacts":{"signers":["cn=builder"]}}`)
	w.get(path+"/"+digest).want(200).has("Unknown: no link counts", "Does not count: the signer is not in the policy's")
}
