package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/store/check"
)

// Changes of a history, each with the start of a line that must be reported, and what follows in it.
var historyChanges = []struct{ change, want, problem string }{
	{"UPDATE receipt_keys SET public_key = x'00'", "receipt key acme key k", "it is not as its event"},
	{"UPDATE receipt_keys SET event_id = 'x'", "receipt key acme key k", `not as its event "x" in the log of epoch 2`},
	{"UPDATE cas SET purpose = 'x'", "CA acme CA idn_", `it has the purpose "x", which is not one of a CA`},
	{"INSERT INTO audits (org_id, seq, event, kind, action, repo, actor) SELECT org_id, 9999, event, kind, action, " +
		"repo, actor FROM audits LIMIT 1", "audit acme: ", "1 administrative actions or violations are listed whose"},
	{"UPDATE policies SET created_by = 'x' WHERE version > 1", "policy acme policy 2 of ", ", x has changed it at "},
	{"UPDATE policies SET event = 1 WHERE version = 1", "policy acme policy 1 of ", "which is not one of the version"},
	{"UPDATE identities SET sigstore = 'x'", "identity acme identity idn_", "it has not one of a key, a certificate and"},
	{"UPDATE repos SET webhook_events = 0", "outbox acme repo api", "its webhooks get the types of events 1"},
	{"INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) SELECT e.predicate_id, r.id, e.org_id, 1 " +
		"FROM environments e, repos r WHERE r.org_id > 1 LIMIT 1", "environment umbrella repo web", "1 rows of deployments"},
	{"UPDATE tips SET sha = branch", "radar acme commit api@", "the radar has it as b"},
	{`UPDATE commit_details SET paths = CAST('["x"]' AS BLOB)`, "derivation acme commit api@",
		"changed paths are not those"},
	{`UPDATE commit_details SET paths = x'7b'`, "derivation acme commit api@", "its changed paths cannot be read"},
	{"INSERT INTO commit_objects (commit_id, object) SELECT id, x'00' FROM commits WHERE author_name = '' AND repo_id = 1",
		"derivation acme commit api@", "its object is stored, and is said to be unknown"},
	{"UPDATE tokens SET rule_id = 1 WHERE is_sign_in = 1", "settings acme session tok_", "the row has rule "},
	{"UPDATE tokens SET auth_time = 1 WHERE is_sign_in = 0", "settings acme token tok_", "the row has auth_time "},
}

// Changes of columns that only a history has are found.
func TestHistoryChangesAreFound(t *testing.T) { testHistory(t, historyChanges, "") }

// A value that cannot be read is a problem, and the rest is checked nevertheless.
func TestUnreadableValues(t *testing.T) {
	testHistory(t, unreadable, "counter acme attestations of predicate ")
}

// noFlag is reported of a flag that is 2.
const noFlag = " cannot be read, so the row is left out: sql/driver: couldn't convert 2 into type bool"

// Changes to values that cannot be read, in the same way.
var unreadable = []struct{ change, want, problem string }{
	{"UPDATE verdicts SET verdict = 2", "value row of verdicts attestation_id ", ": verdict" + noFlag},
	{"UPDATE deployments SET required = 2", "value row of deployments commit_id ", ": required" + noFlag},
	{"UPDATE attestations SET while_promotable = 2 WHERE id = 3",
		"value row of attestations commit_id ", ": while_promotable" + noFlag},
	{"UPDATE keys SET claimed = 2 WHERE id = 1", "value row of keys digest ", ": claimed" + noFlag},
	{"UPDATE tokens SET is_limited = 2", "value row of tokens id 1 token_id tok_", ": is_limited" + noFlag},
	{"UPDATE webhooks SET active = 2", "value row of webhooks id 1 webhook_id whk_", ": active" + noFlag},
	{"UPDATE orgs SET log_public = 2", "settings acme: the rows after org:0 cannot be read", "into type bool"},
	{"UPDATE exchange_rules SET rule = '{'", "settings acme: the rows after exchange_rule:0 cannot be read",
		"parse the rule rul_"},
	{"UPDATE signers SET dn = 'x' WHERE id = 1", "value row of attestations id ",
		`a value cannot be read, so environments of acme/api cannot be checked: signer "x"`},
	{"UPDATE policies SET contract = x'7b'", "derivation acme repo api: the states cannot be derived", "parse contract"},
	{"UPDATE commits SET state = 9 WHERE repo_id = 1", "states acme commit api@",
		" as State(9), and by the events in the log it is "},
	{"UPDATE commits SET writers = '{' WHERE repo_id = 1",
		"derivation acme repo api: the states cannot be derived: commit ", ": decode the writers of a commit"},
	{"UPDATE violations SET missing = '{'", "violation acme attestation att_", "is not as its event says"},
	{"UPDATE commit_details SET parents = x'7b', changes = x'7b'", "facts acme commit carried@", unlikeEvent},
}

// testHistory makes changes of a history, each in a copy. If besides is not empty, a counter is changed, too, and a
// line that begins so must be reported besides.
func testHistory(t *testing.T, changes []struct{ change, want, problem string }, besides string) {
	t.Helper()
	d, counter := newHistory(t), ""
	if besides != "" {
		counter = "; UPDATE predicates SET attestations = attestations + 1"
	}
	for _, test := range changes {
		changed := d.copy(t, run(test.change+counter))
		report, err := check.Run(t.Context(), changed.path, check.Options{ParseRoot: sigstore.ParseRoot})
		must.OK(t, err)

		var lines []string
		for _, p := range report.Problems {
			lines = append(lines, p.String())
		}
		has := func(start, part string) bool {
			return slices.ContainsFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, start) && strings.Contains(line, part)
			})
		}
		if !has(test.want, test.problem) || !has(besides, "") {
			t.Errorf("%s: no problem %q … %q:\n%s", test.change, test.want, test.problem, strings.Join(lines, "\n"))
		}
	}
}
