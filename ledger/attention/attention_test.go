package attention

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

const (
	now  = ledger.Time(1_900_000_000_000)
	day  = 24 * time.Hour
	past = now - 1
)

func ago(d time.Duration) ledger.Time { return now.Add(-d) }
func in(d time.Duration) ledger.Time  { return now.Add(d) }

func TestCommitNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		commit Commit
		want   Kind // empty: none
		at     ledger.Time
	}{
		"a failure":             {Commit{State: ledger.Validating, FailingSince: past}, Failed, past},
		"a failure in flight":   {Commit{FailingSince: past, Flight: InFlight}, Failed, past},
		"a failed deployment":   {Commit{State: ledger.Promotable, FailingSince: past}, Failed, past},
		"a failure in ATTESTED": {Commit{State: ledger.Attested, FailingSince: past, StateSince: 1}, Failed, past},
		"waits":                 {Commit{State: ledger.Attested, StateSince: past}, Review, past},
		"in VALIDATING":         {Commit{State: ledger.Validating, StateSince: past}, "", 0},
		"in PROMOTABLE":         {Commit{State: ledger.Promotable, StateSince: past}, "", 0},
		"lapsed": {Commit{State: ledger.Deployed, FailingSince: ago(day), Replaced: true},
			Lapsed, ago(day)},
		"deployed":                     {Commit{State: ledger.Deployed, StateSince: past}, "", 0},
		"replaced":                     {Commit{FailingSince: past, Replaced: true}, "", 0},
		"replaced on the mainline":     {Commit{FailingSince: past, Replaced: true, OnTarget: true}, "", 0},
		"withdrawn":                    {Commit{FailingSince: past, Flight: Withdrawn, OnTarget: true}, "", 0},
		"landed":                       {Commit{FailingSince: past, Flight: Landed}, "", 0},
		"landed on the mainline":       {Commit{FailingSince: past, Flight: Landed, OnTarget: true}, Failed, past},
		"waits, landed":                {Commit{State: ledger.Attested, StateSince: past, Flight: Landed}, "", 0},
		"failing since almost 30 days": {Commit{FailingSince: ago(Window) + 1}, Failed, ago(Window) + 1},
		"failing since 30 days":        {Commit{FailingSince: ago(Window)}, "", 0},
		"waits since 30 days":          {Commit{State: ledger.Attested, StateSince: ago(Window)}, "", 0},
	} {
		i, ok := test.commit.Needs(now)
		if ok != (test.want != "") || ok && (i.Kind != test.want || i.At != test.at) {
			t.Errorf("%s: %+v, %t, want %s", name, i, ok, test.want)
		}
	}
}

func TestExplain(t *testing.T) {
	requirements := []ledger.RequirementStatus{
		{State: ledger.Attested, Predicate: "met", Applies: true, Met: true, FailedBy: []string{"cn=a"}, Reason: "met"},
		{State: ledger.Attested, Predicate: "elsewhere", FailedBy: []string{"cn=a"}, Reason: "does not apply"},
		{State: ledger.Attested, Predicate: "excepted", Applies: true, FailedBy: []string{"cn=a"},
			Exception: &ledger.ExceptionStatus{}, Reason: "excepted"},
		{State: ledger.Promotable, Predicate: "review:*", Applies: true, Reason: "0 of 1"},
		{State: ledger.Promotable, Predicate: "lint:*", Applies: true, FailedBy: []string{"cn=b"}, Reason: "lint failed"},
		{State: ledger.Deployed, Predicate: "deploy:*", Applies: true, FailedBy: []string{"cn=c"}, Reason: "deploy failed"},
		{State: ledger.Deployed, Predicate: "smoke:*", Applies: true, FailedBy: []string{"cn=d"}, Reason: "smoke failed"},
	}
	for _, test := range []struct {
		kind         Kind
		requirements []ledger.RequirementStatus
		want         Item
		ok           bool
	}{
		{Failed, requirements[:3], Item{Kind: Failed}, false},
		{Failed, requirements[:5], Item{Kind: Failed, Reason: "lint failed", Predicate: "lint:*", Identity: "cn=b"}, true},
		{Failed, requirements, Item{Kind: Failed, Reason: "lint failed; deploy failed; 1 more", Predicate: "lint:*",
			Identity: "cn=b"}, true},
		{Review, requirements, Item{Kind: Review, Reason: "0 of 1; lint failed", Predicate: "review:*"}, true},
		{Review, requirements[:1], Item{Kind: Review}, false},
		{Conflict, nil, Item{Kind: Conflict}, true},
	} {
		got, ok := Item{Kind: test.kind}.Explain(ledger.Attested, test.requirements)
		got.Review = nil // see TestItemsOfReviews
		if got != test.want || ok != test.ok {
			t.Errorf("%s of %d requirements: %+v, %t, want %+v", test.kind, len(test.requirements), got, ok, test.want)
		}
	}
}

// A commit waits for the first requirement for reviews that is not met, also after other
// requirements.
func TestItemsOfReviews(t *testing.T) {
	need := func(predicate string, met bool, signers ...string) ledger.RequirementStatus {
		return ledger.RequirementStatus{State: ledger.Promotable, Predicate: predicate, Applies: true, Met: met,
			Have: len(signers), Need: 2, SignersCounted: signers, Reason: predicate}
	}
	failed := need("review:security", false, "cn=a")
	failed.FailedBy = []string{"cn=z"}
	of := func(all ...ledger.RequirementStatus) []ledger.RequirementStatus { return all }
	many := make([]string, 50)
	for i := range many {
		many[i] = fmt.Sprintf("cn=%02d", i)
	}

	for name, test := range map[string]struct {
		requirements []ledger.RequirementStatus
		want         string // empty: waits for no review
	}{
		"no approval":  {of(need("review:*", false)), "review:* 0 of 2 []"},
		"one approval": {of(need("review:code", false, "cn=a")), "review:code 1 of 2 [cn=a]"},
		"one refusal":  {of(failed), "review:security 1 of 2 [cn=a cn=z]"},
		"the fourth": {of(need("a", false), need("b", false), need("c", false), need("review:*", false)),
			"review:* 0 of 2 []"},
		"met, and another": {of(need("review:*", true, "cn=a", "cn=b"), need("test:*", false)), ""},
		"only in its name": {of(need("peer-review:code", false)), ""},
		"many":             {of(need("review:*", false, many...)), fmt.Sprint("review:* 50 of 2 ", many[:20])},
	} {
		got, _ := Item{Kind: Review}.Explain(ledger.Attested, test.requirements)
		said := ""
		if r := got.Review; r != nil {
			said = fmt.Sprintf("%s %d of %d %v", r.Predicate, r.Have, r.Need, r.Reviewers)
		}
		if said != test.want {
			t.Errorf("%s: %q, want %q", name, said, test.want)
		}
	}
	if got, _ := (Item{Kind: Failed}).Explain(ledger.Attested, []ledger.RequirementStatus{failed}); got.Review != nil {
		t.Errorf("a failed commit waits for %+v", got.Review)
	}
}

func TestConflictItems(t *testing.T) {
	for want, got := range map[string]Item{
		"conflicts with a":                                ConflictItem(now, false).Onto("a", 1, false),
		"conflicts with a and 2 more":                     ConflictItem(now, false).Onto("a", 3, false),
		"conflicts with a, and perhaps others":            ConflictItem(now, false).Onto("a", 1, true),
		"conflicts with b and 1 more, and perhaps others": ConflictItem(now, true).Onto("b", 2, true),
	} {
		if got.Reason != want || got.Kind != Conflict || got.At != now {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	if a, b := ConflictItem(now, true).Severity, ConflictItem(now, false).Severity; a != High || b != Medium {
		t.Errorf("severities %s and %s", a, b)
	}
}

func TestWebhookItems(t *testing.T) {
	for name, test := range map[string]struct {
		hook     outbound.Webhook
		failures int64
		severity Severity // empty: none
		reason   string
	}{
		"works":       {outbound.Webhook{Active: true}, 0, "", ""},
		"failed once": {outbound.Webhook{Active: true, FailingSince: past}, 1, Medium, "failing: 1 failed attempt"},
		"fails":       {outbound.Webhook{Active: true, FailingSince: past}, 4, Medium, "failing: 4 failed attempts"},
		"paused":      {outbound.Webhook{Active: true, FailingSince: past}, 5, Medium, "paused after 5 failed attempts"},
		"disabled":    {outbound.Webhook{DisabledAt: past, DisabledReason: "410"}, 9, High, "disabled: 410"},
		"turned off":  {outbound.Webhook{CreatedAt: past}, 0, Low, "inactive: an admin turned it off"},
		"turned off, failed": {outbound.Webhook{CreatedAt: past, FailingSince: past}, 9, Low,
			"inactive: an admin turned it off"},
	} {
		i, ok := WebhookItem(test.hook, test.failures)
		if ok != (test.severity != "") || i.Severity != test.severity || i.Reason != test.reason || ok && i.At != past {
			t.Errorf("%s: %+v, want %s: %s", name, i, test.severity, test.reason)
		}
	}
}

func TestExpiringItems(t *testing.T) {
	key := func(until ledger.Time) (Item, bool) { return IdentityItem(identity.Identity{NotAfter: until}, now) }
	token := func(until ledger.Time) (Item, bool) { return TokenItem(ledger.Token{ExpiresAt: until}, now) }
	exception := func(until ledger.Time) (Item, bool) {
		return ExceptionItem(ledger.ExceptionRecord{Active: true, Until: until}, now)
	}
	evidence := func(until ledger.Time) (Item, bool) { return EvidenceItem(ledger.Attested, until, now) }

	for _, test := range []struct {
		name  string
		of    func(ledger.Time) (Item, bool)
		until ledger.Time
		want  Severity // empty: none
	}{
		{"a key without an end", key, 0, ""},
		{"a key", key, in(14*day) + 1, ""},
		{"a key soon", key, in(14 * day), Low},
		{"a key tomorrow", key, in(day), Medium},
		{"a key now", key, now, High},
		{"a key that expired", key, ago(14 * day), High},
		{"a key that expired long ago", key, ago(14*day) - 1, ""},
		{"a token without an end", token, 0, ""},
		{"a token", token, in(7*day) + 1, ""},
		{"a token soon", token, in(7 * day), Low},
		{"a token tomorrow", token, in(day), Medium},
		{"a token that expired", token, now, ""},
		{"an exception", exception, in(day) + 1, ""},
		{"an exception soon", exception, in(day), Medium},
		{"an exception that ended", exception, now, ""},
		{"evidence", evidence, in(day) + 1, ""},
		{"evidence soon", evidence, in(day), Medium},
		{"evidence that expired", evidence, now, ""},
	} {
		i, ok := test.of(test.until)
		if ok != (test.want != "") || i.Severity != test.want || ok && (i.Until != test.until || i.Kind != Expiring) {
			t.Errorf("%s: %+v, want %q", test.name, i, test.want)
		}
	}

	for name, ok := range map[string]bool{
		"revoked":      second(IdentityItem(identity.Identity{NotAfter: in(day), RevokedAt: past}, now)),
		"token":        second(TokenItem(ledger.Token{ExpiresAt: in(day), RevokedAt: past}, now)),
		"inactive":     second(ExceptionItem(ledger.ExceptionRecord{Until: in(day)}, now)),
		"in DRAFT":     second(EvidenceItem(ledger.Draft, in(day), now)),
		"in DEPLOYED":  second(EvidenceItem(ledger.Deployed, in(day), now)),
		"not in state": second(EvidenceItem(ledger.Validating, in(day), now)),
	} {
		if ok {
			t.Errorf("%s needs attention", name)
		}
	}
}

func second(_ Item, ok bool) bool { return ok }

// The most urgent item comes first, then the kinds in their order, then the latest, or what
// ends first.
func TestKeys(t *testing.T) {
	list := []Key{
		KeyOf(Item{Severity: Critical, Kind: Violation, At: 5}, 1),
		KeyOf(Item{Severity: Critical, Kind: Violation, At: 4}, 9),
		KeyOf(Item{Severity: High, Kind: Failed, At: 6}, 1),
		KeyOf(Item{Severity: High, Kind: Webhook, At: 9}, 1),
		KeyOf(Item{Severity: Medium, Kind: Conflict, At: 9}, 1),
		KeyOf(Item{Severity: Medium, Kind: Expiring, At: 9, Until: 10}, 1),
		KeyOf(Item{Severity: Medium, Kind: Expiring, At: 1, Until: 11}, 1),
		KeyOf(Item{Severity: Low, Kind: Review, At: 9}, 1),
		KeyOf(Item{Severity: Low, Kind: Review, At: 9}, 2),
	}
	if !slices.IsSortedFunc(list, Key.Compare) {
		t.Errorf("not in order: %v", list)
	}
	for i := range list[1:] {
		if list[i].Compare(list[i+1]) >= 0 {
			t.Errorf("%v is not before %v", list[i], list[i+1])
		}
	}
}

func TestParseKind(t *testing.T) {
	for _, kind := range Kinds() {
		if got, err := ParseKind(string(kind)); got != kind || err != nil {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
	if _, err := ParseKind("violations"); err == nil {
		t.Error("violations is a kind")
	}
}
