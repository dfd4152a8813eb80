package check_test

import (
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

const (
	linkedDigest = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	leadDN       = "cn=lena,ou=leads,o=acme"
	ritaDN       = "cn=Rita,ou=Review,o=acme" // one person with the reviewer
)

// newDerivedDatabase returns a database in which each derived table has rows.
func newDerivedDatabase(t testing.TB) database {
	t.Helper()
	ctx := t.Context()
	d := database{path: filepath.Join(t.TempDir(), "ledger.db")}
	d.keys = d.path + "-keys"
	s := must.Get(store.Open(ctx, d.path, store.Options{}))(t)
	w := &writer{Store: s, t: t, keys: make(map[string]ed25519.PrivateKey)}
	must.OK(t, w.Settle(ctx))
	_, err := w.CreateOrg(ctx, "acme")
	must.OK(t, err)
	_, err = w.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "api"}, "host")
	must.OK(t, err)
	contract, err := policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","carry":["tree","merge"],"carry_signers":["ou=ci"],
		"where":"predicate.result.duration_ms < 60000"},
		{"name":"review","state":"PROMOTABLE","predicate":"review:*","exclude_author":true,
		"carry":["tree","merge"],"carry_signers":["ou=ci"]},
		{"state":"DEPLOYED","predicate":"deploy:prod"}],
		"exceptions":{"max_duration":"24h","signers":["ou=leads"]}}`))
	must.OK(t, err)
	_, err = w.SetPolicy(ctx, "acme", "api", contract, 1, "host")
	must.OK(t, err)
	for _, dn := range []string{buildDN, reviewDN, leadDN, ritaDN} {
		w.addSigner(dn)
	}

	prove := func(parent string, tree, n int) string {
		id, raw := storetest.ObjectOn(parent, tree, "Dora", n)
		_, _, err := w.Register(ctx, "acme", "api", id, ledger.Registration{
			Object: raw, Branch: fmt.Sprint("b", n), Target: "main",
		})
		must.OK(t, err)
		return id
	}
	w.register()
	base := prove(sha(900), 1, 1)
	head := prove(base, 2, 2)
	squash := prove(base, 3, 3) // of head
	same := prove(sha(901), 2, 4)
	w.say(base, buildDN, "test:go", ledger.Fail)
	w.say(base, buildDN, "test:go", ledger.Pass)
	w.say(base, reviewDN, "review:code", ledger.Pass)
	w.say(base, buildDN, "deploy:prod", ledger.Pass)
	w.say(head, buildDN, "test:go", ledger.Pass)
	w.say(head, ritaDN, "review:code", ledger.Pass)
	merge, err := attestation.NewMergeStatement(squash, attestation.Merge{
		Repo: "acme/api", Kind: attestation.Squashed, Source: attestation.MergedCommit{SHA: head},
		Parent: attestation.MergedCommit{SHA: base}, Tree: fmt.Sprintf("%040x", 3),
	})
	must.OK(t, err)
	w.sign(buildDN, merge)
	w.say(squash, buildDN, "deploy:prod", ledger.Pass)
	rollback, err := attestation.NewRollbackStatement(squash, attestation.Rollback{
		Repo: "acme/api", Environment: "prod", Reason: "slow", To: attestation.RunningCommit{SHA: base},
	})
	must.OK(t, err)
	w.sign(buildDN, rollback)

	w.sign(buildDN, []byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"api","digest":{"gitCommit":"`+
		same+`"}},{"name":"image","digest":{"sha256":"`+linkedDigest+`"}}],
		"predicateType":"https://slsa.dev/provenance/v1","predicate":{"buildDefinition":{"buildType":"https://x.example/b",
		"externalParameters":{}},"runDetails":{"builder":{"id":"https://ci.example"}}}}`))
	w.say(same, buildDN, "deploy:staging", ledger.Pass)
	w.say(same, buildDN, "deploy:staging", ledger.Fail)
	baseline, err := attestation.NewBaselineStatement(base, attestation.Baseline{Repo: "acme/api", Environment: "eu"})
	must.OK(t, err)
	w.sign(buildDN, baseline)
	bare := prove(sha(902), 5, 5)
	w.say(bare, buildDN, "test:go", ledger.Pass)
	w.say(bare, buildDN, "deploy:prod", ledger.Pass) // a violation
	exception, err := attestation.NewExceptionStatement(bare, attestation.Exception{
		Repo: "acme/api", Requirement: "review", Reason: "urgent", Until: w.Now().Add(time.Hour),
	})
	must.OK(t, err)
	w.sign(leadDN, exception)
	innerID, inner := storetest.ObjectOn(base, 6, "Dora", 6)
	_, err = w.AddObjects(ctx, "acme", "api", lineage.Objects{Objects: []lineage.Object{{Commit: innerID, Object: inner}}})
	must.OK(t, err)
	deep := prove(innerID, 7, 7)
	review, err := attestation.NewStatement("acme/api", deep, attestation.ResultPredicate{Predicate: "review:code",
		Result: ledger.Result{Status: ledger.Pass}, Base: base})
	must.OK(t, err)
	w.sign(reviewDN, review)
	changes, err := attestation.NewChangesStatement(deep, attestation.Changes{Repo: "acme/api", Base: base,
		Paths: []string{"api.go", "web.js"}})
	must.OK(t, err)
	w.sign(buildDN, changes)
	_, _, err = w.Correct(ctx, "acme", "api", bare, ledger.CommitCorrection{Targets: &[]string{"dev"}}, "host")
	must.OK(t, err)

	must.OK(t, w.Settle(ctx))
	d.sign(t, s)
	must.OK(t, w.Close())
	return d
}

// say records a result.
func (w *writer) say(commit, dn, predicate string, status ledger.Status) {
	w.t.Helper()
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", commit,
		attestation.ResultPredicate{Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: 1200}})
	must.OK(w.t, err)
	w.sign(dn, payload)
}

// sign signs and records a statement.
func (w *writer) sign(dn string, payload []byte) {
	w.t.Helper()
	envelope, err := attestation.SignDSSE(w.keys[dn], payload)
	must.OK(w.t, err)
	_, _, err = w.Attest(w.t.Context(), "acme", "api", func(at attestation.Place, k *identity.Keyring) (
		*attestation.Attestation, error,
	) {
		return at.Verify(envelope, k, w.Now())
	})
	must.OK(w.t, err)
}

// baselineID is the row of the predicate of the baselines in the ledger.
const baselineID = "(SELECT id FROM predicates WHERE name = 'baseline:eu')"

// Ways to change what is derived, each with the start of a line that must be reported.
var derivedChanges = []struct {
	name, change string
	want         []string
}{
	{"the latest attestations, forgotten", `DELETE FROM latest`,
		[]string{"latest acme commit api@", ": attestation att_",
			" is the latest of its signer, and the row is of none"}},
	{"an earlier attestation as the latest", `UPDATE latest SET attestation_id = (SELECT min(id) FROM attestations)
		WHERE attestation_id = (SELECT min(id) + 1 FROM attestations)`,
		[]string{"latest acme commit api@", " is the latest of its signer, and the row is of att_"}},
	{"the latest for something else", `INSERT INTO latest SELECT commit_id, predicate_id, 'x', signer_id, attestation_id
		FROM latest LIMIT 1`,
		[]string{"latest acme commit api@", ": the row is of attestation in row ", ", and none of its signer counts"}},
	{"the attestation before", `UPDATE attestations SET previous = 0 WHERE previous > 0`,
		[]string{"record acme commit api@", " was recorded after row ", ", and its row says after row 0"}},
	{"a deployment of what was not PROMOTABLE", `UPDATE attestations SET while_promotable = 1 - while_promotable
		WHERE id = 1`,
		[]string{"record acme commit api@", " was not recorded in the state of the commit that its row says"}},
	{"the reason of a rollback", `UPDATE attestations SET reason = 'x' WHERE reason = 'slow'`,
		[]string{"record acme attestation att_", ": reason: the ledger says x, and it is slow"}},
	{"the e-mail addresses of a signer", `UPDATE attestations SET emails = 'eve@example.com'`,
		[]string{"record acme attestation att_",
			`: the row has the e-mail addresses "eve@example.com" of the signer, and `}},
	{"when a test finished", `UPDATE attestations SET finished_at = 9000000000000 WHERE id = 1`,
		[]string{"record acme attestation att_", ": the row says that it finished at 2255",
			", and neither it nor one before"}},
	{"since when an attestation ages", `UPDATE attestations SET aged_from = 1`,
		[]string{"record acme attestation att_", ": time: the ledger says 1970"}},
	{"the rules of a mapping", `UPDATE attestations SET mapping_version = 1 WHERE id = 1`,
		[]string{"record acme attestation att_",
			": the row says that it was mapped by the rules 1, and all are by 4"}},
	{"the time of a transition", `UPDATE transitions SET at = 1 WHERE to_state = 4`,
		[]string{"states acme commit api@", " at 1970"}},
	{"since when a commit has its state", `UPDATE commits SET state_since = 1 WHERE state = 4`,
		[]string{"states acme commit api@", ": the ledger shows the commit ", " as DEPLOYED since 1970",
			", and the log since "}},
	{"the expiry of evidence", `UPDATE commits SET expires = 9000000000000 WHERE state = 1`,
		[]string{"derivation acme commit api@", ": its evidence is said to expire at ", ", and does at "}},
	{"a failure that is none", `UPDATE commits SET failing_since = 1 WHERE state < 4`,
		[]string{"derivation acme commit api@", ": it is said that a requirement fails: true, and by its evidence: false"}},
	{"a commit that seems to be due, by what it inherits", `UPDATE commits SET basis = basis - 1 WHERE state < 4`,
		[]string{"derivation acme commit api@", ": its state is to be derived again, and that is not planned"}},
	{"a commit that seems to be due, by its policy", `UPDATE commits SET policy_version = 1 WHERE state < 4`,
		[]string{"derivation acme commit api@", ": its state is to be derived again, and that is not planned"}},
	{"a verdict, forgotten", `DELETE FROM verdicts`,
		[]string{"derivation acme commit api@", ": its state is to be derived again, and that is not planned"}},
	{"the object of a commit", `UPDATE commit_objects SET object = x'00'`,
		[]string{"derivation acme commit api@", ": its object is not that of the commit: "}},
	{"a lost object",
		`DELETE FROM commit_objects`,
		[]string{"derivation acme commit api@", ": its object is said to be known, and is missing"}},
	{"the message of a commit", `UPDATE commits SET message = 'x' WHERE tree <> ''`,
		[]string{"derivation acme commit api@", ": tree, message, time or parents are not those of its object"}},
	{"the parents of a commit", `UPDATE commit_details SET parents = CAST('["ab"]' AS BLOB)`,
		[]string{"derivation acme commit api@", ": tree, message, time or parents are not those of its object"}},
	{"a tree that two commits have", `UPDATE commits SET tree_id = 0`,
		[]string{"derivation acme commit api@", ": 2 commits have its tree, and they are joined as 0"}},
	{"a tree that one commit has",
		`UPDATE commits SET tree_id = (SELECT id FROM trees) WHERE tree = (SELECT max(tree) FROM commits)`,
		[]string{"derivation acme commit api@", ": 1 commits have its tree, and they are joined as 1"}},
	{"a commit of another tree", `UPDATE commits SET tree_id = (SELECT id FROM trees) WHERE tree = ''`,
		[]string{"derivation acme commit api@", ": it is joined to a tree, and its object is not known"}},
	{"the commits of a tree", `UPDATE trees SET commits = 7`,
		[]string{"derivation acme commit api@", ": 2 commits have its tree, 2 are joined to it, and it counts 7"}},
	{"evidence of a tree", `DELETE FROM tree_latest`,
		[]string{"derivation acme commit api@",
			": the evidence of its tree has the attestation in row 0, and the latest is in row "}},
	{"other evidence of a tree",
		`INSERT INTO tree_latest SELECT tree_id, predicate_id, 'x', signer_id, stated, attestation_id,
		commit_id, failed FROM tree_latest`,
		[]string{"derivation acme commit api@", ": the evidence of its tree has the attestation in row ",
			", which none of its commits has"}},
	{"a failure of a tree", `UPDATE tree_latest SET failed = 1`,
		[]string{"derivation acme commit api@", ": the evidence of its tree has the attestation in row "}},

	{"two people of one", `UPDATE signers SET person = id`,
		[]string{"signer acme signer " + ritaDN + ": it counts as the person 4, and by its keys and names it is 2"}},
	{"one person of two", `UPDATE signers SET person = 1`,
		[]string{"signer acme signer cn=rita,", ": it counts as the person 1, and by its keys and names it is another"}},
	{"a person who is nobody",
		`UPDATE signers SET person = 99 WHERE person = 1; UPDATE keys SET person = 99 WHERE person = 1`,
		[]string{"signer acme signer cn=build,", ": it counts as the person 99, which is not a signer who does"}},
	{"a signer without a person", `UPDATE signers SET person = 0 WHERE id = 1`,
		[]string{"signer acme signer cn=build,", ": it counts as the person 0, and by its keys and names it is another"}},
	{"the person of a key", `UPDATE keys SET person = 3 WHERE person = 1`,
		[]string{"signer acme key ", ": it counts as the person 3, and by its keys and names it is 1"}},
	{"the owner of a key that only signs commits", `UPDATE keys SET person = 1 WHERE person = 0`,
		[]string{"signer acme key abab", ": it counts as the person 1, and nobody has used it"}},
	{"a key that has signed a commit", `UPDATE keys SET claimed = 0 WHERE claimed = 1`,
		[]string{"signer acme key abab", ": it has signed a commit, and no row says so"}},
	{"a deleted key that has signed a commit", `DELETE FROM keys WHERE claimed = 1`,
		[]string{"signer acme key abab", ": it has signed a commit, and no row says so"}},
	{"the folded DN", `UPDATE signers SET folded = 'cn=x' WHERE id = 2`,
		[]string{"signer acme signer cn=rita,", `: the row has the name "rita" and, folded, "cn=x"`}},
	{"the CN",
		`UPDATE signers SET cn = 'x' WHERE id = 2`, []string{"signer acme signer cn=rita,", `: the row has the name "x"`}},
	{"a forgotten name", `DELETE FROM signer_names WHERE name = 'build'`,
		[]string{"signer acme signer cn=build,", `: it has the name "build", which is not stored`}},
	{"another name", `INSERT INTO signer_names VALUES (1, 'dora', 2)`,
		[]string{"signer acme signer cn=rita,", `: the name "dora" is stored, which it does not have`}},
	{"why a signer is distinct", `UPDATE signers SET distinct_by = 2 WHERE id = 1`,
		[]string{"the row says that it is distinct: true, and the events: false (2 and 0)"}},

	{"an artifact of something else", `UPDATE artifacts SET digest = randomblob(32)`,
		[]string{"artifact acme attestation att_", ": its artifact " + linkedDigest + " is not linked with its commit"}},
	{"an artifact of another commit", `UPDATE artifacts SET commit_id = 1`,
		[]string{"artifact acme attestation att_", ": its artifact " + linkedDigest + " is not linked with its commit"}},
	{"an artifact that is no build", `UPDATE artifacts SET is_build = 0`,
		[]string{"artifact acme attestation att_", " is not linked with its commit"}},
	{"a foreign artifact",
		`INSERT INTO artifacts SELECT org_id, randomblob(32), commit_id, identity_id, signer_id, is_build,
		attestation_id FROM artifacts`,
		[]string{"artifact acme: 2 artifacts are linked with commits, and attestations link 1 of them"}},
	{"an artifact linked by a later attestation", `UPDATE artifacts SET attestation_id = attestation_id + 1`,
		[]string{"artifact acme attestation att_", " is linked by a later one, in row "}},

	{"the end of an exception", `UPDATE exceptions SET ends_at = ends_at + 1`,
		[]string{"exception acme attestation att_", ": the row says {", ", and the statement {"}},
	{"a forgotten exception", `DELETE FROM exceptions`,
		[]string{"exception acme attestation att_", ": it is an exception, and has no row"}},
	{"an exception of nobody",
		`INSERT INTO exceptions SELECT 1, repo_id, commit_id, requirement, reason, ends_at FROM exceptions`,
		[]string{"exception acme: there are 2 exceptions, and 1 attestations are such"}},
	{"a path less", `UPDATE change_records SET paths = CAST('["api.go"]' AS BLOB)`,
		[]string{"change record acme attestation att_", ": the row has other paths than the statement"}},
	{"a forgotten change record", `DELETE FROM change_records`,
		[]string{"change record acme attestation att_", ": it is a change record, and has no row"}},
	{"a change record of nobody", `INSERT INTO change_records SELECT 1, paths FROM change_records`,
		[]string{"change record acme: there are 2 change records, and 1 attestations are such"}},
	{"the source of a merge", `UPDATE merges SET source_id = commit_id`,
		[]string{"merge acme attestation att_", ": the row says {", ", and the statement {"}},
	{"the state of a first parent", `UPDATE merges SET parent_state = 4`,
		[]string{"merge acme attestation att_",
			": the row says that the first parent was DEPLOYED, and it was at most DRAFT"}},
	{"the state of a first parent, in a claim of an early release", `UPDATE merges SET parent_state = 4, parent_id = 0`,
		[]string{"merge acme attestation att_",
			": the row says that the first parent was DEPLOYED, and it was at most PROMOTABLE"}},
	{"the commit of the mainline", `UPDATE merges SET parent_id = source_id`,
		[]string{"merge acme attestation att_", ": the row says {", ", and the statement {"}},
	{"a claim of a merge, forgotten", `DELETE FROM merges`,
		[]string{"merge acme attestation att_", ": it is a claim of a merge, and has no row"}},
	{"a claim that the object contradicts", `UPDATE commits SET tree = '1' WHERE id IN (SELECT commit_id FROM merges)`,
		[]string{"merge acme attestation att_", ": something carries by it, and it does not agree with the object: " +
			"the claim is about the tree 000000000000, but the commit has 1"}},
	{"no commit of the mainline", `UPDATE merges SET parent_id = 0`,
		[]string{"merge acme attestation att_", ": the row says {", ", and the statement {"}},
	{"what the mainline meets", `UPDATE merge_sides SET met = '{}' WHERE met <> ''`,
		[]string{"derivation acme commit api@",
			": what it meets for the claims that name it is not what its evidence gives"}},
	{"the base of a review", `UPDATE attestations SET base = '' WHERE base <> '' AND reason = ''`,
		[]string{"record acme attestation att_", ": base: the ledger says none, and it is "}},
	{"an object that was not known", `UPDATE commits SET gap = 1 - gap WHERE state < 4`,
		[]string{"derivation acme commit api@",
			": it is said that an object was not known from which its state follows: true"}},
	{"the object of an ancestor", `UPDATE ancestors SET object = x'00'`,
		[]string{"object acme commit api@", ": its object is not that of the commit: "}},
	{"the key that signed an ancestor", `UPDATE ancestors SET signing_key = 'ab'`,
		[]string{"object acme commit api@", ": the key that signed it is not the one of its object"}},
	{"an ancestor, forgotten", `DELETE FROM ancestors`,
		[]string{"object acme: there are events that list 1 commits whose objects are missing"}},
	{"an ancestor that nobody has sent", `INSERT INTO ancestors SELECT repo_id, 'ff', signing_key, object FROM ancestors`,
		[]string{"object acme commit api@ff: its object is stored, and no event lists it"}},
	{"an ancestor that is registered", `INSERT INTO ancestors SELECT c.repo_id, c.sha, c.signing_keys, o.object
		FROM commits c JOIN commit_objects o ON o.commit_id = c.id`,
		[]string{"object acme commit api@", ": it is registered with its object, and has a second one"}},
	{"a commit that is not marked as a merge", `UPDATE commits SET merged = 0 WHERE merged = 1`,
		[]string{"merge acme attestation att_", ": the commits are not marked as those of one"}},
	{"a source without a row", `DELETE FROM merge_sides`,
		[]string{"merge acme attestation att_", ": the commits are not marked as those of one"}},
	{"a merge of nobody", `INSERT INTO merges (attestation_id, commit_id, source_id, parent_id, kind, parent_state,
		reason) SELECT 1, commit_id, source_id, parent_id, kind, parent_state, reason FROM merges`,
		[]string{"merge acme: there are 2 merges, and 1 attestations are such"}},
	{"a violation, forgotten", `DELETE FROM violations`,
		[]string{"violation acme attestation att_", ": there is an event of the violation, and no row"}},
	{"the time of a violation", `UPDATE violations SET opened_at = 1`,
		[]string{"violation acme attestation att_", ": the row of the violation is not as its event says"}},
	{"what is missing", `UPDATE violations SET missing = '[]'`,
		[]string{"violation acme attestation att_", ": the row of the violation is not as its event says"}},
	{"a violation that was closed",
		`UPDATE violations SET closed_at = opened_at, closed_how = 'rollback' WHERE closed_at = 0`,
		[]string{"violation acme attestation att_",
			": the row says that the violation is closed: true, and the events: false"}},
	{"a violation of another deployment", `UPDATE violations SET attestation_id = 1`,
		[]string{"violation acme attestation att_", ": there is no event of the violation"}},
	{"an event of a violation, not listed", `DELETE FROM violation_events`,
		[]string{"violation acme event ", ": it is of a violation: true, and the list of those has it: false"}},
	{"the repo of an event of a violation", `UPDATE violation_events SET repo_id = 7`,
		[]string{"violation acme event ", ": the list of events of violations has {repo:7 "}},
	{"a correction, forgotten", `DELETE FROM corrections`,
		[]string{"correction acme commit ", ": an event says that its targets were corrected at ", ", and no row"}},
	{"a correction", `UPDATE corrections SET after = 'x'`,
		[]string{"correction acme commit ", ": no event says that its targets were corrected at "}},
	{"what runs, ended", `UPDATE deployments SET ended_id = 1 WHERE ended_id = 0`,
		[]string{"deployment acme deploy:", " of api: the row of the commit in row ", " says {",
			", and the attestations {"}},
	{"what was rolled back, runs", `UPDATE deployments SET ended_id = 0 WHERE ended_id > 0`,
		[]string{"deployment acme deploy:staging of api: the row of the commit in row ", " says {",
			", and the attestations {"}},
	{"a deployment that the policy did not require", `UPDATE deployments SET required = 1 - required`,
		[]string{"deployment acme deploy:prod of api: the row of the commit in row ", " says {",
			", and the attestations {"}},
	{"a deployment, forgotten", `DELETE FROM deployments`,
		[]string{"deployment acme deploy:prod of api: the row of the commit in row ", " says {attestation:0 "}},
	{"a deployment that never was", `INSERT INTO deployments SELECT repo_id, predicate_id, 1, attestation_id, required, 0
		FROM deployments LIMIT 1`,
		[]string{"deployment acme deploy:", ": the commit in row 1 was not deployed, and its row says {"}},
	{"a baseline, forgotten", "DELETE FROM deployments WHERE predicate_id = " + baselineID,
		[]string{"deployment acme the baseline for deploy:eu of api: the row of the commit in row ",
			" says {attestation:0 "}},
	{"a baseline that never was", `INSERT INTO deployments
		SELECT repo_id, predicate_id, 1, attestation_id, 0, 0 FROM deployments WHERE predicate_id = ` + baselineID,
		[]string{"deployment acme the baseline for deploy:eu of api: the commit in row 1 was not deployed, and its row " +
			"says {"}},
	{"a baseline that has ended", "UPDATE deployments SET ended_id = attestation_id WHERE predicate_id = " + baselineID,
		[]string{"deployment acme the baseline for deploy:eu of api: the row of the commit in row ", " says {",
			", and the attestations {"}},
	{"a deployment to something else",
		`UPDATE deployments SET predicate_id = (SELECT id FROM predicates WHERE name = 'test:go') WHERE ended_id > 0`,
		[]string{"environment acme repo api: 1 rows of deployments and environments are of no environment"}},
	{"the last change of an environment", `UPDATE environments SET latest_id = 1`,
		[]string{"environment acme deploy:prod of api: the attestation in row ",
			" has changed it last, and its row says that"}},
	{"an environment, forgotten", `DELETE FROM environments`,
		[]string{"environment acme deploy:prod of api: the attestation in row ", ", and its row says that in row 0"}},
	{"a verdict", `UPDATE verdicts SET verdict = 1 - verdict`,
		[]string{"verdict acme attestation att_",
			": the expression predicate.result.duration_ms < 60000 is stored as false, and is true"}},
}

func TestDerivedChangesAreFound(t *testing.T) {
	d := newDerivedDatabase(t)
	if lines := d.problems(t); len(lines) > 0 {
		t.Fatalf("an intact database has these problems:\n%s", strings.Join(lines, "\n"))
	}
	for _, test := range derivedChanges {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lines := d.copy(t, run(test.change)).problems(t)
			if !slices.ContainsFunc(lines, func(line string) bool { return containsAll(line, test.want) }) {
				t.Errorf("got the problems\n%s\nwant %q", strings.Join(lines, "\n"), test.want)
			}
		})
	}
}
