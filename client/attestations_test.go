package client_test

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// RecordAll returns an item for each envelope, also if there is only one.
func TestRecordAll(t *testing.T) {
	b := newBackend(t)
	key, _ := b.addKey(t, "cn=ci,ou=build,o=acme")
	sign := func(key ed25519.PrivateKey, predicate string) string {
		payload, err := attestation.NewStatement("acme/api", strings.Repeat("1", 40),
			attestation.ResultPredicate{Predicate: predicate, Result: ledger.Result{Status: ledger.Pass}})
		must.OK(t, err)
		envelope := must.Get(attestation.SignDSSE(key, payload))(t)
		return string(envelope)
	}
	_, stranger, err := ed25519.GenerateKey(nil)
	must.OK(t, err)

	for _, test := range []struct {
		name, body string
		want       []int
	}{
		{"one", sign(key, "a"), []int{201}},
		{"one that is already recorded", sign(key, "a") + "\n", []int{200}},
		{"several", sign(key, "a") + "\n" + sign(stranger, "a") + "\n" + sign(key, "b"), []int{200, 422, 201}},
		{"a list with one", "[" + sign(key, "c") + "]", []int{201}},
	} {
		t.Run(test.name, func(t *testing.T) {
			items, err := b.admin.RecordAll(t.Context(), "acme", "api", []byte(test.body))
			if err != nil || len(items) != len(test.want) {
				t.Fatalf("got %d items and error %v", len(items), err)
			}
			for i, item := range items {
				recorded := item.Attestation != nil && item.Attestation.Org == "acme" && item.Problem == nil
				if item.Index != i || item.Status != test.want[i] || recorded != (item.Status < 300) {
					t.Errorf("item %d is %+v, want status %d", i, item, test.want[i])
				}
			}
		})
	}
	if _, err := b.admin.RecordAll(t.Context(), "acme", "api", []byte(sign(stranger, "a"))); client.CodeOf(err) !=
		ledger.CodeUntrustedIdentity {
		t.Errorf("one that is refused: got error %v", err)
	}
	if _, err := b.admin.RecordAll(t.Context(), "acme", "api", []byte(sign(key, "d")+"\n{")); client.CodeOf(err) !=
		ledger.CodeInvalidJSON {
		t.Errorf("a file that is cut off: got error %v", err)
	}
}
