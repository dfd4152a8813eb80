package ledger

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
)

func TestNewSecret(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		secret := NewSecret()
		if len(secret) != 53 || seen[secret] {
			t.Fatalf("NewSecret() = %q: %d characters, seen before: %t", secret, len(secret), seen[secret])
		}
		seen[secret] = true
		hash, err := ParseSecret(secret)
		if err != nil || hash != sha256.Sum256([]byte(secret)) {
			t.Fatalf("ParseSecret(%q) = %x, %v", secret, hash, err)
		}
	}
}

func TestParseSecret(t *testing.T) {
	// The format is fixed: existing tokens must remain valid.
	const good = "ldg_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG1DrFcK"

	for name, test := range map[string]struct{ secret, err string }{
		"a valid token":           {good, ""},
		"nothing":                 {"", "begin with ldg_"},
		"another service's token": {"ghp_" + good[4:], "begin with ldg_"},
		"a missing character":     {good[:len(good)-1], "instead of 53: copy it again in full"},
		"an extra character":      {good + "0", "instead of 53: copy it again in full"},
		"two characters swapped":  {strings.Replace(good, "ab", "ba", 1), "checksum is wrong"},
		"another case":            {strings.Replace(good, "G", "g", 1), "checksum is wrong"},
		"a wrong checksum":        {good[:47] + "000000", "checksum is wrong"},
		"other characters":        {"ldg_" + strings.Repeat("é", 24) + "0", "checksum is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSecret(test.secret)
			if test.err == "" {
				if err != nil {
					t.Fatalf("ParseSecret: %v", err)
				}
				return
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Code != CodeUnauthenticated || !strings.Contains(e.Detail, test.err) {
				t.Fatalf("ParseSecret: %v; want %s with %q", err, CodeUnauthenticated, test.err)
			}
			if test.secret != "" && strings.Contains(err.Error(), test.secret) {
				t.Errorf("the error repeats the secret: %v", err)
			}
		})
	}
}

func TestNewTokenCheck(t *testing.T) {
	const now = Time(1_790_000_000_000)
	for name, test := range map[string]struct {
		token NewToken
		field string // the invalid field, or empty
	}{
		"no expiry":                {NewToken{Name: "ci", Scope: Write}, ""},
		"an expiry":                {NewToken{Name: "ci", Scope: Admin, ExpiresAt: now + 1}, ""},
		"a name in any script":     {NewToken{Name: "сборка 建造 №1", Scope: Read}, ""},
		"a name of 100 characters": {NewToken{Name: strings.Repeat("ü", 100), Scope: Read}, ""},
		"a name of 101 characters": {NewToken{Name: strings.Repeat("ü", 101), Scope: Read}, "name"},
		"no name":                  {NewToken{Scope: Read}, "name"},
		"a space before the name":  {NewToken{Name: " ci", Scope: Read}, "name"},
		"a line break in a name":   {NewToken{Name: "c\ni", Scope: Read}, "name"},
		"a bidi override":          {NewToken{Name: "c\u202ei", Scope: Read}, "name"},
		"no scope":                 {NewToken{Name: "ci"}, "scope"},
		"already expired":          {NewToken{Name: "ci", Scope: Read, ExpiresAt: now}, "expires_at"},
	} {
		t.Run(name, func(t *testing.T) { wantFieldFault(t, test.token.Check(now), test.field) })
	}
}

// wantFieldFault checks that err is a CodeInvalidField about the given field, or nil if
// field is empty.
func wantFieldFault(t *testing.T, err error, field string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
		return
	}
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != CodeInvalidField || len(e.Fields) != 1 || e.Fields[0].Field != field {
		t.Errorf("got %v; want %s about %s", err, CodeInvalidField, field)
	}
}
