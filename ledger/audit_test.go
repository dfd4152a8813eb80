package ledger

import (
	"fmt"
	"strings"
	"testing"
)

func TestChanges(t *testing.T) {
	field := func(values ...any) []Field {
		var fields []Field
		for i, v := range values {
			fields = append(fields, Field{string(rune('a' + i)), v})
		}
		return fields
	}
	for name, test := range map[string]struct {
		before, after []Field
		want          string
	}{
		"none":             {field(1, "x"), field(1, "x"), "[]"},
		"one":              {field(1, "x"), field(1, "y"), "[b: x → y]"},
		"created":          {nil, field(1, nil, true), "[a: 1 c: true]"},
		"deleted":          {field(1, nil), nil, "[a: 1 → none]"},
		"becomes absent":   {field("x"), field(nil), "[a: x → none]"},
		"becomes present":  {field(nil), field([]string{"x"}), `[a: ["x"]]`},
		"an empty text":    {field("x"), field(""), `[a: x → ""]`},
		"nothing":          {nil, nil, "[]"},
		"a text with HTML": {nil, field("<ü>&"), "[a: <ü>&]"},
	} {
		if got := fmt.Sprint(Changes(test.before, test.after)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A large value is replaced by its digest, also where it is compared.
func TestLargeAuditValues(t *testing.T) {
	fits := strings.Repeat("x", maxAuditValue-2) // with its quotes
	for _, test := range []struct {
		value string
		want  int
	}{{fits, maxAuditValue}, {fits + "x", len(`"sha256:` + strings.Repeat("0", 64) + ` (4097 bytes)"`)}} {
		changes := Changes(nil, []Field{{"a", test.value}})
		if len(changes) != 1 || len(changes[0].After) != test.want {
			t.Errorf("%d bytes became %s", len(test.value), changes)
		}
	}
	large := []Field{{"a", fits + "x"}}
	if changes := Changes(large, []Field{{"a", fits + "y"}}); len(changes) != 1 {
		t.Errorf("large values that differ: %s", changes)
	}
	if changes := Changes(large, large); len(changes) != 0 {
		t.Errorf("a large value that stays: %s", changes)
	}
}

func TestParseAuditAction(t *testing.T) {
	for _, action := range AuditActions() {
		kind, verb, ok := strings.Cut(string(action), ".")
		if got, err := ParseAuditAction(string(action)); got != action || err != nil || got.IsKind() || !ok || verb == "" {
			t.Errorf("%s: %s, %v", action, got, err)
		}
		if got, err := ParseAuditAction(kind); string(got) != kind || err != nil || !got.IsKind() {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
	const want = `"token." is not an administrative action (use org, repo, token, issuer, exchange_rule, session, ` +
		`member, member_rule, passkey, identity, trusted_root, certificate, policy, webhook, exception, baseline, commit, ` +
		`log, database, or one with its verb, such as token.created)`
	if _, err := ParseAuditAction("token."); err == nil || err.Error() != want {
		t.Errorf("token.: %v, want %s", err, want)
	}
}

func TestActor(t *testing.T) {
	for _, test := range []struct {
		actor      Actor
		who, where string
	}{
		{Actor{Name: "ann", Token: "tok_1", Via: ViaWeb, Address: "192.0.2.1"}, "ann (tok_1)", "web 192.0.2.1"},
		{Actor{Name: "host", Via: ViaHost, User: "root"}, "host (root)", "host"},
		{Actor{Name: "ledgerd"}, "ledgerd", ""},
	} {
		if who, where := test.actor.Who(), test.actor.Where(); who != test.who || where != test.where {
			t.Errorf("%+v: %q, %q, want %q, %q", test.actor, who, where, test.who, test.where)
		}
	}
}

func TestScopesOfEventTypes(t *testing.T) {
	for scope, want := range map[Scope]bool{Read: false, Write: false, Admin: true, Host: true} {
		types := fmt.Sprint(EventTypesFor(scope))
		if strings.Contains(types, "audit") != want || !strings.Contains(types, "identity") {
			t.Errorf("%s may read %s", scope, types)
		}
	}
}
