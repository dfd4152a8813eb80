package sigstore_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

func file(name string) []byte { return ledgertest.SigstoreFile(filepath.Join("..", ".."), name) }

func parse(t testing.TB, document []byte) identity.BundleVerifier {
	t.Helper()
	return must.Get(sigstore.ParseRoot(document))(t)
}

// edit returns a JSON document with changed members.
func edit(document []byte, change func(members map[string]any)) []byte {
	var members map[string]any
	if err := json.Unmarshal(document, &members); err != nil {
		panic(err)
	}
	change(members)
	return ledgertest.Must(json.Marshal(members))
}

func entry(members map[string]any, list string) map[string]any {
	return members[list].([]any)[0].(map[string]any)
}

const publicGood = "public-good-trusted_root.json"

// Errors of trusted roots name the field.
func TestParseRootRefuses(t *testing.T) {
	public := file(publicGood)
	many := func(list string) func(map[string]any) {
		return func(m map[string]any) { m[list] = ledgertest.Must(manyOf(m[list].([]any)[0])) }
	}
	for name, test := range map[string]struct {
		document []byte
		want     string
	}{
		"empty":         {nil, "not a trusted root"},
		"no JSON":       {[]byte("x"), "not a trusted root"},
		"unknown field": {edit(public, func(m map[string]any) { m["x"] = 1 }), `unknown field "x"`},
		"two documents": {slices.Concat(public, []byte("\n"), public), "2 trusted roots in one file"},
		"another type":  {edit(public, func(m map[string]any) { m["mediaType"] = "x" }), "mediaType: "},
		"too large":     {append(bytes.Repeat([]byte(" "), identity.MaxTrustedRoot), public...), "bytes: at most 262144"},
		"no authority": {edit(public, func(m map[string]any) { delete(m, "certificateAuthorities") }),
			"certificateAuthorities: "},
		"neither logs nor timestamps": {edit(public, func(m map[string]any) {
			delete(m, "tlogs")
			delete(m, "timestampAuthorities")
		}), "tlogs: required, or timestampAuthorities"},
		"a log without a key": {edit(public, func(m map[string]any) { delete(entry(m, "tlogs"), "publicKey") }),
			"tlogs[0]: "},
		"a log with a key of small order": {edit(public, func(m map[string]any) {
			key := entry(m, "tlogs")["publicKey"].(map[string]any)
			key["keyDetails"] = "PKIX_ED25519"
			key["rawBytes"] = ledgertest.Must(x509.MarshalPKIXPublicKey(ledgertest.SmallOrderKeys()[2]))
		}), "tlogs[0]: the Ed25519 key is a point of small order"},
		"a CT log without an ID": {edit(public, func(m map[string]any) { delete(entry(m, "ctlogs"), "logId") }),
			"ctlogs[0]: "},
		"an authority without a chain": {edit(public, func(m map[string]any) {
			delete(entry(m, "certificateAuthorities"), "certChain")
		}), "certificateAuthorities[0]: "},
		"many logs":        {edit(public, many("tlogs")), "tlogs: 101 entries"},
		"many authorities": {edit(public, many("certificateAuthorities")), "certificateAuthorities: 101 entries"},
		"a long chain": {edit(public, func(m map[string]any) {
			chain := entry(m, "certificateAuthorities")["certChain"].(map[string]any)
			chain["certificates"] = ledgertest.Must(manyOf(chain["certificates"].([]any)[0]))
		}), "certificateAuthorities[0].certChain: 101 certificates"},
		"a timestamp authority without a CA": {ledgertest.NewSigstore().TrustedRoot(func(m map[string]any) {
			chain := m["timestampAuthorities"].([]any)[0].(map[string]any)["certChain"].(map[string]any)
			chain["certificates"] = chain["certificates"].([]map[string]any)[:1]
		}), "timestampAuthorities[0].certChain: it has no CA"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sigstore.ParseRoot(test.document)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func manyOf(v any) ([]any, error) {
	list := make([]any, 101)
	for i := range list {
		list[i] = v
	}
	return list, nil
}

// What a bundle must have follows from the trusted root: an entry of a log, if the root lists logs; an
// SCT, if it lists logs of certificates; and a trusted time.
func TestWhatIsRequired(t *testing.T) {
	public, bundle := file(publicGood), file("github-sigstore-js-2.1.0.json")
	own := ledgertest.NewSigstore()
	payload := ledgertest.Passed()
	timestamped := own.Bundle(own.Leaf("https://forge.example/acme/x", map[int]string{8: "https://ci.example"}), payload,
		attestation.PAE(attestation.StatementType, payload), ledgertest.Now.Std()).JSON()
	with := func(lists ...string) []byte { // what the public instance lists
		return own.TrustedRoot(func(m map[string]any) {
			var all map[string]any
			must.OK(t, json.Unmarshal(public, &all))
			for _, list := range lists {
				m[list] = all[list]
			}
		})
	}

	for name, test := range map[string]struct {
		root, bundle []byte
		want         string // empty: it verifies
	}{
		"a log, an SCT":     {public, bundle, ""},
		"a timestamp":       {own.TrustedRoot(nil), timestamped, ""},
		"no entry of a log": {with("tlogs"), timestamped, "no log entry proves when it was signed"},
		"no SCT":            {with("ctlogs"), timestamped, "the certificate has no SCT"},
		"no logs in the root": {edit(public, func(m map[string]any) {
			delete(m,
				"tlogs")
			m["timestampAuthorities"] = m["certificateAuthorities"]
		}), bundle, "no timestamp proves"},
		"an SCT that is ignored": {edit(public, func(m map[string]any) { delete(m, "ctlogs") }), bundle, ""},
	} {
		t.Run(name, func(t *testing.T) {
			signed, err := parse(t, test.root).Verify(test.bundle)
			switch {
			case test.want == "" && (err != nil || signed.Time.IsZero()):
				t.Errorf("got %+v, %v", signed, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// A trusted root that lacks a key for the time of a bundle is named as the reason.
func TestStaleRoots(t *testing.T) {
	public, bundle := file(publicGood), file("github-sigstore-js-2.1.0.json") // of 2023-08-29
	until := func(list, end string) []byte {
		return edit(public, func(m map[string]any) {
			for _, e := range m[list].([]any) {
				e := e.(map[string]any)
				if key, ok := e["publicKey"].(map[string]any); ok {
					e = key
				}
				e["validFor"].(map[string]any)["end"] = end
			}
		})
	}

	without := func(list, field string) []byte { // as if its keys were others
		return edit(public, func(m map[string]any) {
			for _, e := range m[list].([]any) {
				e.(map[string]any)[field] = map[string]any{"keyId": []byte(strings.Repeat("x", 32))}
			}
		})
	}
	for name, test := range map[string]struct {
		root []byte
		want string
	}{
		"a log that ended": {until("tlogs", "2023-01-01T00:00:00Z"),
			"its key of the transparency log c0d23d6ad406973f… is not for 2023-08-29T15:40:23Z"},
		"another log": {without("tlogs", "logId"), "it has no key of the transparency log c0d23d6ad406973f…"},
		"an authority that ended": {until("certificateAuthorities", "2023-01-01T00:00:00Z"),
			"no certificate authority that issued certificates as"},
		"a CT log that ended": {until("ctlogs", "2022-10-21T00:00:00Z"), "no key of the log of certificates"},
		"another CT log":      {without("ctlogs", "logId"), "no key of the log of certificates"},
		"of another Sigstore": {file("intoto-with-custom-trust-root-trusted_root.json"),
			"no key of the transparency log"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, test.root).Verify(bundle)
			if err == nil || !strings.HasPrefix(err.Error(), "the trusted root is stale") ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}

	for name, root := range map[string][]byte{
		"logs":        until("tlogs", "2023-08-29T15:40:23Z"),
		"authorities": until("certificateAuthorities", "2023-08-29T15:40:23Z"),
	} {
		if _, err := parse(t, root).Verify(bundle); err != nil {
			t.Errorf("%s that ended after it was signed: %v", name, err)
		}
	}
}

// The number and the sizes of entries and timestamps are limited.
func TestBundlesAreBounded(t *testing.T) {
	own := ledgertest.NewSigstore()
	r := parse(t, own.TrustedRoot(nil))
	payload := ledgertest.Passed()
	bundle := func() *ledgertest.Bundle {
		return own.Bundle(own.Leaf("https://forge.example/acme/x", map[int]string{8: "https://ci.example"}), payload,
			attestation.PAE(attestation.StatementType, payload), ledgertest.Now.Std())
	}
	for name, test := range map[string]struct {
		change func(*ledgertest.Bundle)
		want   string // empty: it verifies
	}{
		"4 timestamps": {func(b *ledgertest.Bundle) { b.Timestamps = times(4, b.Timestamps[0]) }, ""},
		"5 timestamps": {func(b *ledgertest.Bundle) { b.Timestamps = times(5, b.Timestamps[0]) },
			"5 timestamps: at most 4"},
		"a large timestamp": {func(b *ledgertest.Bundle) { b.Timestamps = [][]byte{make([]byte, 8<<10+1)} },
			"8193 bytes: at most 8192"},
		"9 log entries": {func(b *ledgertest.Bundle) {
			var public struct{ VerificationMaterial struct{ TlogEntries []any } }
			must.OK(t, json.Unmarshal(file("github-sigstore-js-2.1.0.json"), &public))
			list := make([]any, 9)
			for i := range list {
				list[i] = public.VerificationMaterial.TlogEntries[0]
			}
			b.TlogEntry = list
		}, "9 log entries: at most 8"},
		"a large payload": {func(b *ledgertest.Bundle) { b.Payload = make([]byte, sigstore.MaxBundle) }, "may have 4194304"},
	} {
		t.Run(name, func(t *testing.T) {
			b := bundle()
			test.change(b)
			_, err := r.Verify(b.JSON())
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (!errors.Is(err, identity.ErrMalformedBundle) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func times(n int, timestamp []byte) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = timestamp
	}
	return list
}

// FuzzVerify looks for bundles that stop the program, take long, or verify although they were changed.
func FuzzVerify(f *testing.F) {
	for _, name := range []string{
		"github-sigstore-js-2.1.0.json", "slsa-generator-v0.3.json", "happy-path-intoto-in-dsse-v3-bundle.sigstore.json",
		"dsse-invalid-sig_fail-bundle.sigstore.json", "happy-path-v0.3-bundle.sigstore.json",
	} {
		f.Add(file(name))
	}
	own := ledgertest.NewSigstore()
	payload := ledgertest.Passed()
	good := own.Bundle(own.Leaf("https://forge.example/acme/x", map[int]string{8: "https://ci.example"}), payload,
		attestation.PAE(attestation.StatementType, payload), ledgertest.Now.Std())
	f.Add(good.JSON())
	public, private := parse(f, file(publicGood)), parse(f, own.TrustedRoot(nil))

	f.Fuzz(func(t *testing.T, bundle []byte) {
		for _, r := range []identity.BundleVerifier{public, private} {
			signed, err := r.Verify(bundle)
			if (signed == nil) != (err != nil) {
				t.Fatalf("%+v and %v", signed, err)
			}
			if r == private && err == nil && !bytes.Equal(signed.Message, good.PAE) {
				t.Fatalf("verified another message: %q", signed.Message)
			}
		}
	})
}

// FuzzParseRoot looks for trusted roots that stop the program.
func FuzzParseRoot(f *testing.F) {
	for _, name := range []string{publicGood, "intoto-with-custom-trust-root-trusted_root.json",
		"rekor2-dsse-happy-path-trusted_root.json"} {
		f.Add(file(name))
	}
	bundle := file("github-sigstore-js-2.1.0.json")
	f.Fuzz(func(t *testing.T, document []byte) {
		if r, err := sigstore.ParseRoot(document); err == nil {
			_, _ = r.Verify(bundle)
		}
	})
}

// The time of a bundle is the earliest that logs and timestamp authorities show.
func TestTimeOfBundles(t *testing.T) {
	for name, test := range map[string]struct{ root, want string }{
		"github-sigstore-js-2.1.0.json":               {publicGood, "2023-08-29T15:40:23Z"},
		"rekor2-dsse-happy-path-bundle.sigstore.json": {"rekor2-dsse-happy-path-trusted_root.json", "2026-05-13T19:23:33Z"},
	} {
		signed, err := parse(t, file(test.root)).Verify(file(name))
		if err != nil || signed.Time.UTC().Format(time.RFC3339) != test.want {
			t.Errorf("%s: %+v, %v; want %s", name, signed, err, test.want)
		}
	}
}
