package ledger

import "testing"

// The bodies are fixed: the history lists them byte for byte, and receivers verify
// signatures over them and parse them.
func TestRender(t *testing.T) {
	const at = Time(1795424400123)

	for name, test := range map[string]struct {
		event Event
		want  string
	}{
		"attestation": {
			AttestationEvent{
				ID: "evt_1", Org: "acme", Repo: "api", Commit: "6e61", Predicate: "test:go", Identity: "cn=ci,ou=build,o=acme",
				Result: Result{Status: Pass, DurationMS: 1234}, Timestamp: at, Attestation: "att_1", PayloadDigest: "sha256:00",
			},
			`{"id":"evt_1","type":"attestation","org":"acme","repo":"api","commit":"6e61","predicate":"test:go",` +
				`"identity":"cn=ci,ou=build,o=acme","result":{"status":"pass","duration_ms":1234},` +
				`"timestamp":"2026-11-23T09:00:00.123Z","attestation":"att_1","payload_digest":"sha256:00"}`,
		},
		"attestation with a passkey": {
			AttestationEvent{
				ID: "evt_1", Identity: "cn=ann", PayloadDigest: "sha256:00", Key: "0a", EnvelopeDigest: "sha256:01",
				AssertionDigest: "sha256:02",
			},
			`{"id":"evt_1","type":"attestation","org":"","repo":"","commit":"","predicate":"","identity":"cn=ann",` +
				`"result":{"status":"","duration_ms":0},"timestamp":"","attestation":"","payload_digest":"sha256:00","key":"0a",` +
				`"envelope_digest":"sha256:01","assertion_digest":"sha256:02"}`,
		},
		"state": {
			StateEvent{
				ID: "evt_2", Org: "acme", Repo: "api", Commit: "6e61", From: Validating, To: Attested,
				Cause: Cause{CauseAttestation, "att_1"}, Timestamp: at,
			},
			`{"id":"evt_2","type":"state","org":"acme","repo":"api","commit":"6e61","from":"VALIDATING","to":"ATTESTED",` +
				`"cause":{"type":"attestation","id":"att_1"},"timestamp":"2026-11-23T09:00:00.123Z"}`,
		},
		"policy": {
			PolicyEvent{
				ID: "evt_3", Org: "acme", Repo: "api", Version: 2, PreviousVersion: 1, Digest: "sha256:00", ChangedBy: "tok_1",
				Timestamp: at,
			},
			`{"id":"evt_3","type":"policy","org":"acme","repo":"api","version":2,"previous_version":1,` +
				`"digest":"sha256:00","changed_by":"tok_1","timestamp":"2026-11-23T09:00:00.123Z"}`,
		},
		"key": {
			KeyEvent{ID: "evt_4", Org: "acme", Action: KeyRevoked, Purpose: KeyOfCA, Key: "0a", Timestamp: at},
			`{"id":"evt_4","type":"key","org":"acme","action":"revoked","purpose":"ca","key":"0a",` +
				`"timestamp":"2026-11-23T09:00:00.123Z"}`,
		},
		"key of a new log": {
			KeyEvent{
				ID: "evt_5", Org: "acme", Action: KeyAdded, Purpose: KeyOfLog, Key: "0a", PublicKey: []byte("key"), NotBefore: at,
				NotAfter: at, Reason: "restored", Previous: &PreviousLog{"h/log", 7, "AAAA", "h/log\n7\nAAAA\n"}, Timestamp: at,
			},
			`{"id":"evt_5","type":"key","org":"acme","action":"added","purpose":"log","key":"0a","public_key":"a2V5",` +
				`"not_before":"2026-11-23T09:00:00.123Z","not_after":"2026-11-23T09:00:00.123Z","reason":"restored",` +
				`"previous":{"origin":"h/log","size":7,"root":"AAAA","checkpoint":"h/log\n7\nAAAA\n"},` +
				`"timestamp":"2026-11-23T09:00:00.123Z"}`,
		},
		"identity": {
			IdentityEvent{
				ID: "evt_6", Org: "acme", Action: IdentityAdded, IdentityID: "idn_1", Kind: "key", DN: "cn=ci", Key: "0a",
				Timestamp: at,
			},
			`{"id":"evt_6","type":"identity","org":"acme","action":"added","identity_id":"idn_1","kind":"key","dn":"cn=ci",` +
				`"key":"0a","timestamp":"2026-11-23T09:00:00.123Z"}`,
		},
		"audit": {
			AuditEvent{
				ID: "evt_7", Org: "acme", Action: AuditRepoChanged, Repo: "api", Target: "api",
				By: Actor{Name: "ann", Token: "tok_1", Via: "api", Address: "192.0.2.1"}, Timestamp: at,
				Changes: Changes([]Field{{"web_url", nil}, {"forge", "a"}}, []Field{{"web_url", "https://x"}, {"forge", "a"}}),
			},
			`{"id":"evt_7","type":"audit","org":"acme","action":"repo.changed","repo":"api","target":"api",` +
				`"by":{"name":"ann","token":"tok_1","via":"api","address":"192.0.2.1"},` +
				`"changes":[{"field":"web_url","after":"https://x"}],"timestamp":"2026-11-23T09:00:00.123Z"}`,
		},
		"audit without changes": {
			AuditEvent{ID: "evt_8", Org: "acme", Action: AuditWebhookPinged, Target: "whk_1", By: Actor{Name: "host"}},
			`{"id":"evt_8","type":"audit","org":"acme","action":"webhook.pinged","target":"whk_1","by":{"name":"host"},` +
				`"changes":[],"timestamp":""}`,
		},
		"no HTML escapes": {
			PolicyEvent{ChangedBy: "<ü>&"},
			`{"id":"","type":"policy","org":"","repo":"","version":0,"previous_version":0,"digest":"","changed_by":"<ü>&",` +
				`"timestamp":""}`,
		},
		"invalid UTF-8 is replaced": {
			PolicyEvent{ChangedBy: "a\xffb"},
			`{"id":"","type":"policy","org":"","repo":"","version":0,"previous_version":0,"digest":"","changed_by":"a` +
				"\ufffd" + `b","timestamp":""}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(Render(test.event)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestParseEventType(t *testing.T) {
	for _, want := range EventTypes() {
		if got, err := ParseEventType(string(want)); got != want || err != nil {
			t.Errorf("ParseEventType(%q) = %q, %v", want, got, err)
		}
	}
	const want = `"State" is not an event type (use attestation, state, policy, radar, violation, commit, key, ` +
		"identity, audit or standing)"
	if _, err := ParseEventType("State"); err == nil || err.Error() != want {
		t.Errorf("ParseEventType(State): %v, want %s", err, want)
	}
}

// Every type of event can be read, and says so if it has a word that this release does not know.
func TestReadEvent(t *testing.T) {
	for _, kind := range EventTypes() {
		b, err := ReadEvent(kind, []byte(`{"id":"evt_1"}`))
		if err != nil || b.Unknown != "" || b.Event.EventType() != kind {
			t.Errorf("%s: %+v, %v", kind, b, err)
		}
		b, err = ReadEvent(kind, []byte(`{"id":"evt_1","tomorrow":{}}`))
		if err != nil || b.Unknown != "the field tomorrow" {
			t.Errorf("%s: %+v, %v", kind, b, err)
		}
	}

	if b, err := ReadEvent("of-tomorrow", nil); err != nil || b.Unknown != "the type of-tomorrow" {
		t.Errorf("a type of tomorrow: %+v, %v", b, err)
	}
	if _, err := ReadEvent(EventState, []byte(`{"tomorrow":1,"to":17}`)); err == nil {
		t.Error("a state that is a number is read")
	}
}
