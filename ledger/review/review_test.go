package review

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

const commitID = "2222222222222222222222222222222222222222"

// faultOf returns the code of an error and the field that it is about; both are empty for nil.
func faultOf(t testing.TB, err error) (code ledger.Code, field string) {
	t.Helper()
	if err == nil {
		return "", ""
	}
	e, ok := errors.AsType[*ledger.Error](err)
	if !ok {
		t.Fatalf("%v is not a ledger.Error", err)
	}
	for _, f := range e.Fields {
		field = f.Field
	}
	return e.Code, field
}

// A comment looks like what it says.
func TestComments(t *testing.T) {
	for comment, ok := range map[string]bool{
		"":                           true,
		"Looks good":                 true,
		"two\n\n\tlines":             true,
		"„schön“ — 審査 <b>&amp;":      true,
		"\U0001f44d\U0001f3fd":       true, // thumbs up, with a tone of skin
		"\u2764\ufe0f":               true, // red heart
		"\U0001f469\u200d\U0001f4bb": true, // woman with a computer
		strings.Repeat("ä", 2000):    true,
		strings.Repeat("ä", 2001):    false,
		"a\xff":                      false, // not UTF-8
		"a\x00b":                     false,
		"a\rb":                       false, // overwrites the line in a terminal
		"\x1b[2K":                    false,
		"a\u202eb":                   false, // right to left
		"a\u2066b":                   false,
		"a\u200bb":                   false, // zero width space
		"a\u200db":                   false, // a joiner that joins nothing
		"\u200d":                     false,
		"a\ufe0f":                    false, // a selector of emoji on a letter
		"\ufe0f":                     false,
		"a\ufeffb":                   false,
		"a\u00adb":                   false, // soft hyphen
		"a\u2028b":                   false,
		"a\u3164b":                   false, // Hangul filler
		"a\u115fb":                   false,
		"a\u034fb":                   false, // grapheme joiner
		"a\u2800b":                   false, // Braille blank
		"a\U000e0041b":               false, // tag
		"a\U000e0100b":               false, // variation selector
		"a\ue000b":                   false, // private use
		" \n ":                       false, // blank
		"\u3000":                     false,
	} {
		if got := IsComment(comment); got != ok {
			t.Errorf("IsComment(%.20q) = %t", comment, got)
		}
	}
}

func TestDraftsAreCompleted(t *testing.T) {
	for name, test := range map[string]struct {
		draft NewDraft
		field string // empty: valid
	}{
		"approve":             {NewDraft{Verdict: Approve}, ""},
		"request changes":     {NewDraft{Verdict: RequestChanges, Predicate: "review:security", Comment: "No"}, ""},
		"no verdict":          {NewDraft{}, "verdict"},
		"verdict in capitals": {NewDraft{Verdict: "APPROVE"}, "verdict"},
		"result of a test":    {NewDraft{Verdict: Approve, Predicate: "test:go"}, "predicate"},
		"prefix alone":        {NewDraft{Verdict: Approve, Predicate: "review:"}, "predicate"},
		"pattern":             {NewDraft{Verdict: Approve, Predicate: "review:*"}, "predicate"},
		"other case":          {NewDraft{Verdict: Approve, Predicate: "Review:code"}, "predicate"},
		"type":                {NewDraft{Verdict: Approve, Predicate: "review://x.example"}, "predicate"},
		"invisible comment":   {NewDraft{Verdict: Approve, Comment: "\u200b"}, "comment"},
	} {
		got, err := test.draft.Completed()
		if _, field := faultOf(t, err); field != test.field {
			t.Errorf("%s: %v, want an error about %q", name, err, test.field)
		}
		if err == nil && !strings.HasPrefix(got.Predicate, "review:") {
			t.Errorf("%s: completed to %+v", name, got)
		}
	}
}

// The statement has the tree and the base only if they are known, and the comment only if there is one.
func TestStatements(t *testing.T) {
	const (
		start = `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"acme/api","digest":{"gitCommit":"` +
			commitID + `"`
		middle = `}}],"predicateType":"https://github.com/ledgerd/ledgerd/predicate/result/v1","predicate":` +
			`{"predicate":"review:code","result":{"status":"`
	)
	tree := strings.Repeat("7", 40)
	for _, test := range []struct {
		draft            NewDraft
		tree, base, want string
	}{
		{NewDraft{Verdict: Approve}, "", "", start + middle +
			`pass","duration_ms":0},"repo":"acme/api","annotations":{"nonce":"N"}}}`},
		{NewDraft{Verdict: Approve}, "", tree, start + middle +
			`pass","duration_ms":0},"repo":"acme/api","base":"` + tree + `","annotations":{"nonce":"N"}}}`},
		{NewDraft{Verdict: RequestChanges, Comment: "<No>"}, tree, "", start + `,"gitTree":"` + tree + `"` + middle +
			`fail","duration_ms":0},"repo":"acme/api","annotations":{"comment":"<No>","nonce":"N","tree":"` + tree + `"}}}`},
	} {
		n, err := test.draft.Completed()
		must.OK(t, err)
		got, err := n.Statement("acme/api", commitID, test.tree, test.base, "N")
		must.OK(t, err)
		if string(got) != test.want {
			t.Errorf("the statement is\n%s, want\n%s", got, test.want)
		}
		if commit, err := attestation.CommitOf(got); err != nil || commit != commitID {
			t.Errorf("it is about commit %q, %v", commit, err)
		}
	}
}

func TestSignInsAreRecentFor15Minutes(t *testing.T) {
	const now = ledger.Time(1_800_000_000_000)
	for ago, want := range map[time.Duration]ledger.Code{
		0:                               "",
		15 * time.Minute:                "",
		15*time.Minute + time.Second:    ledger.CodeSignInAgain,
		-time.Minute:                    "", // the clock of the provider is ahead
		-time.Minute - time.Millisecond: ledger.CodeSignInAgain,
	} {
		if got, _ := faultOf(t, CheckRecent(now.Add(-ago), now, "x")); got != want {
			t.Errorf("%s ago: %q, want %q", ago, got, want)
		}
	}
	if got, _ := faultOf(t, CheckRecent(0, now, "x")); got != ledger.CodeSignInAgain {
		t.Errorf("at an unknown time: %q", got)
	}
}

// Only a P-256 key whose signature is in DER over the encoding of the payload is certified.
func TestReviewsAreVerified(t *testing.T) {
	key := newKey(t, elliptic.P256())
	good := signed(t, key, []byte("statement"))
	onP384, otherKey := signed(t, newKey(t, elliptic.P384()), good.Payload), spki(t, newKey(t, elliptic.P256()))
	bare := must.Get(identity.Sign(key, []byte("statement")))(t)
	const invalidSignature, invalidField = ledger.CodeInvalidSignature, ledger.CodeInvalidField
	for name, test := range map[string]struct {
		change func(*NewReview)
		code   ledger.Code
		field  string
	}{
		"as signed":            {func(*NewReview) {}, "", ""},
		"another payload":      {func(n *NewReview) { n.Payload = []byte("other") }, invalidSignature, ""},
		"no payload":           {func(n *NewReview) { n.Payload = nil }, invalidSignature, ""},
		"not over the PAE":     {func(n *NewReview) { n.Signature = bare }, invalidSignature, ""},
		"no signature":         {func(n *NewReview) { n.Signature = nil }, invalidSignature, ""},
		"longer signature":     {func(n *NewReview) { n.Signature = append(n.Signature, 0) }, invalidSignature, ""},
		"another key":          {func(n *NewReview) { n.PublicKey = otherKey }, invalidSignature, ""},
		"key on another curve": {func(n *NewReview) { *n = onP384 }, invalidField, "public_key"},
		"no key":               {func(n *NewReview) { n.PublicKey = nil }, invalidField, "public_key"},
		"more than a key":      {func(n *NewReview) { n.PublicKey = append(n.PublicKey, 0) }, invalidField, "public_key"},
	} {
		n := NewReview{Payload: append([]byte(nil), good.Payload...), PublicKey: append([]byte(nil), good.PublicKey...),
			Signature: append([]byte(nil), good.Signature...)}
		test.change(&n)
		got, err := n.Verify()
		if code, field := faultOf(t, err); code != test.code || field != test.field {
			t.Errorf("%s: %v, want %q about %q", name, err, test.code, test.field)
		}
		if err == nil && !got.Equal(key.Public()) {
			t.Errorf("%s: it is another key", name)
		}
	}
	if good.Digest() != sha256.Sum256([]byte("statement")) {
		t.Error("the digest is not that of the payload")
	}
}

func newKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	return must.Get(ecdsa.GenerateKey(curve, rand.Reader))(t)
}

func spki(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	return must.Get(x509.MarshalPKIXPublicKey(key.Public()))(t)
}

func signed(t testing.TB, key crypto.Signer, payload []byte) NewReview {
	t.Helper()
	signature := must.Get(identity.Sign(key, attestation.PAE(attestation.StatementType, payload)))(t)
	return NewReview{Payload: payload, PublicKey: spki(t, key), Signature: signature}
}
