// Package rederive derives the states of a repo's commits again, from the events in the
// transparency log of its org and what they commit to: signed attestations, contracts, the terms
// of identities, and what is known of commits.
package rederive

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/ledger/where"
)

// A Replay collects what the log of an org has of a repo. Events are added in the order of the
// log, all before the first Derive.
type Replay struct {
	contracts map[int]policy.Contract
	programs  map[string]*where.Program // by expression; nil if it does not compile
	verdicts  policy.Verdicts

	signers   *identity.Signers
	hasUnread bool                // whether signers may have addresses that were not read
	holders   map[string][]string // the IDs of identities by key and DN
	trusted   moment              // when an identity was last added or changed
	joined    moment              // when a signature last made people one
	versions  []version
	isFirst   bool // a state followed from version 1 of the contract
	commits   map[string]*commit
	trees     map[string][]*commit // commits whose object is known
	next      int64                // the number of the last event
	objects   objects
	// mainline has the answers about its commits, by commit, and derived counts them.
	mainline map[string][]mainlineAnswer
	derived  int
	// maxMainline is the constant of this name; tests lower it.
	maxMainline int
	// based counts the commits that are based. basesCarry reports whether reviews that rest on the history may carry
	// between commits with the same tree.
	based      int
	basesCarry bool
	// acts are the attestations about environments for which a contract asks what deployments ship, and exceptions. The
	// first acted of them are in environments.
	acts         []act
	acted        int
	environments map[string]*environment
	// hasDelivered reports whether Needs has returned what deployments shipped.
	hasDelivered bool
	numbered     []*commit // by their numbers, less one
}

// An act is the number of a record of a commit.
type act struct {
	commit *commit
	n      int
}

// A version is when a version of the contract came into effect.
type version struct {
	number int
	moment
}

// A commit is what the log has of a commit.
type commit struct {
	sha    string
	number int64
	first  moment // when the first event about it was
	digest string // of the facts in its last event; empty without one
	tree   string // the same
	logged moment // when that was
	proven moment // when its object became known, if there is a tree
	known  *facts.Commit
	paths  []string
	recs   []record
	states []state
	// standing is the last that was logged.
	standing state
	// isBased reports whether its evidence, or what it inherits by its tree, may rest on the history, and isFollowed
	// whether Needs has followed its claims.
	isBased, isFollowed bool
	// ships reports whether a contract asked what one of its deployments shipped.
	ships bool
}

// A record is a recorded attestation.
type record struct {
	moment
	evidence  policy.Evidence
	exception *policy.Exception
	isAgain   bool   // the commit is deployed although it was rolled back
	identity  string // the ID of the signer's
	isJudged  bool   // WhilePromotable is set
	to        string // the commit that runs after a rollback; empty if it names none
	// ships reports whether it is a deployment that counts only if all that it ships is covered. Whether that is so is
	// judged with the environment. If it is not known, doubt says why; learnt is as in basis.
	ships  bool
	doubt  string
	learnt int64
	// merge is what a claim of a merge says; nil for other attestations. refused says why nothing carries by it, and why
	// that is not known, if isWeighed is set.
	merge        *attestation.Merge
	refused, why string
	isWeighed    bool
}

// A state is a state that a commit has reached.
type state struct {
	to ledger.State
	moment
	cause ledger.Cause
}

// New returns an empty replay of a repo with the given versions of its contract.
func New(contracts map[int]policy.Contract) *Replay {
	r := &Replay{
		contracts: contracts, programs: make(map[string]*where.Program),
		verdicts: make(policy.Verdicts), signers: identity.NewSigners(), holders: make(map[string][]string),
		versions: []version{{number: 1}},
		commits:  make(map[string]*commit), trees: make(map[string][]*commit), mainline: make(map[string][]mainlineAnswer),
		maxMainline: maxMainline, environments: make(map[string]*environment),
		objects: objects{known: make(map[string]moment), read: make(map[string]*object)},
	}
	for _, c := range contracts {
		r.basesCarry = r.basesCarry || c.CarriesChanges() || c.Carries() && c.ExcludesAuthor()
	}
	return r
}

// now returns the moment of the next event.
func (r *Replay) now(at ledger.Time) moment {
	r.next++
	return moment{r.next, at}
}

// learn returns the commit of an event, and notes the time of the first event about it.
func (r *Replay) learn(sha string, at ledger.Time) *commit {
	c := r.commit(sha)
	if c.first.at == 0 {
		c.first = moment{r.next, at}
	}
	return c
}

func (r *Replay) commit(sha string) *commit {
	c := r.commits[sha]
	if c == nil {
		c = &commit{sha: sha, number: int64(len(r.commits) + 1)}
		r.commits[sha], r.numbered = c, append(r.numbered, c)
	}
	return c
}

// Identity adds an event of an identity of the org.
func (r *Replay) Identity(e ledger.IdentityEvent) error {
	if e.Kind == ledger.KindTrustedRoot || e.Kind == ledger.KindPasskey {
		return nil // no state follows from it
	}
	r.trusted = r.now(e.Timestamp)
	err := r.signers.Trust(e)
	r.signers.IsJoined = false // trusted says when
	if err != nil || e.Kind != string(identity.KeyIdentity) {
		return err
	}
	dn, err := identity.ParseDN(e.DN)
	if err != nil {
		return err
	}
	if holder := e.Key + dn.String(); !slices.Contains(r.holders[holder], e.IdentityID) {
		r.holders[holder] = append(r.holders[holder], e.IdentityID)
	}
	return nil
}

// addresses returns the e-mail addresses that identities have so far. The keys that verify signatures
// have only the present ones, and evidence keeps those of its time.
func (r *Replay) addresses(ids []string) (emails []string) {
	for _, id := range ids {
		e, _ := r.signers.Identity(id)
		emails = append(emails, identity.Identity{Email: e.Email, Emails: e.Emails}.Addresses()...)
	}
	return emails
}

// Signed adds an event of an attestation in another repo of the org, which shows that a signer
// has a key, but not which e-mail addresses a certificate has, if there is one.
func (r *Replay) Signed(e ledger.AttestationEvent) error {
	dn, err := identity.ParseDN(e.Identity)
	if err != nil {
		return fmt.Errorf("signer of %s: %w", e.Attestation, err)
	}
	r.signers.Sign(dn, e.Key)
	r.signers.Name(dn)
	r.noteJoined(e.Timestamp)
	r.hasUnread = r.hasUnread || len(r.holders[e.Key+dn.String()]) == 0
	return nil
}

// Attestation adds the event of an attestation in the repo with what was signed. The error says
// that its signer was not allowed to attest the predicate.
func (r *Replay) Attestation(e ledger.AttestationEvent, signed *attestation.Attestation) error {
	v := facts.Evidence(signed)
	v.Attestation, v.RecordedAt = e.Attestation, e.Timestamp
	if e.Base != "" { // an early release has recorded no base, and does not read it
		v.Base = signed.Base
	}
	key := hex.EncodeToString(signed.Signer.Key[:])
	rec := record{moment: r.now(e.Timestamp), evidence: v, merge: signed.Merge,
		isAgain: signed.Again != "", identity: signed.Signer.Identity}
	holders := r.holders[key+v.Signer.String()]
	if _, ok := r.signers.Identity(rec.identity); !ok && len(holders) > 0 { // a pinned key, which has another ID
		rec.identity = holders[0]
	}
	rec.evidence.Emails = slices.Concat(v.Emails, r.addresses(holders), r.addresses([]string{rec.identity}))
	if x, ok := facts.Exception(signed, &v); ok {
		rec.exception = &x
	}
	r.signers.Sign(v.Signer, key)
	r.signers.Name(v.Signer, v.Emails...)
	r.noteJoined(e.Timestamp)
	c := r.learn(signed.Commit, e.Timestamp)
	if signed.Rollback != nil {
		rec.to = signed.Rollback.To.SHA
	}
	c.recs = append(c.recs, rec)
	r.act(c)
	if v.Base != "" {
		r.base(c, signed.Merge, e.Timestamp)
	}
	r.evaluate(&v, signed.Payload)

	if name, ok := ledger.BaselineOf(v.Predicate, v.PredicateType); ok &&
		!r.mayAttest(ledger.EnvironmentPredicate(name), slices.Concat(holders, []string{rec.identity})) {
		return fmt.Errorf("%s is a baseline of %s, to which %s was not allowed to deploy", e.Attestation, name, v.Signer)
	}

	// Another release may have given the statement another predicate.
	if e.Predicate == v.Predicate && !r.mayAttest(v.Predicate, slices.Concat(holders, []string{rec.identity})) {
		return fmt.Errorf("%s is for %s, which %s was not allowed to attest", e.Attestation, v.Predicate, v.Signer)
	}
	return nil
}

// act notes the last attestation of a commit if it has a part in what runs.
func (r *Replay) act(c *commit) {
	n := len(c.recs) - 1
	rec := &c.recs[n]
	name := environmentOf(&rec.evidence)
	contract, ok := r.contracts[r.versions[len(r.versions)-1].number]
	rec.ships = ok && contract.Delivers(&rec.evidence)
	if rec.ships && name == "" { // it passes no gap
		rec.ships, rec.isJudged = false, true
	}
	if rec.ships {
		c.ships, r.objects.inUse = true, true
	}

	isAsked := false
	for _, contract := range r.contracts {
		isAsked = isAsked || contract.DeliversTo(name) || contract.HasDelivery() && rec.exception != nil
	}
	if !isAsked {
		return
	}
	r.acts = append(r.acts, act{c, n})
	if rec.exception == nil && r.environments[name] == nil {
		r.environments[name] = newEnvironment()
	}
}

// base notes that the evidence of a commit may rest on the history: a review with a base, or a claim of a merge, which
// makes its commits known.
func (r *Replay) base(c *commit, m *attestation.Merge, at ledger.Time) {
	r.objects.inUse = true
	if !c.isBased {
		r.noteBased(c)
		if r.basesCarry {
			r.noteBased(r.siblings(c)...)
		}
	}
	if m != nil {
		r.learn(m.Source.SHA, at)
		r.learn(m.Parent.SHA, at)
	}
}

// noteBased notes that what commits have or inherit may rest on the history.
func (r *Replay) noteBased(list ...*commit) {
	for _, c := range list {
		if !c.isBased {
			c.isBased = true
			r.based++
		}
	}
}

// noteJoined notes when people became one, if they have.
func (r *Replay) noteJoined(at ledger.Time) {
	if r.signers.IsJoined {
		r.signers.IsJoined, r.joined = false, r.now(at)
	}
}

// mayAttest reports whether one of the identities may attest a predicate, as the log has them so
// far, or whether none of them is in the log yet.
func (r *Replay) mayAttest(predicate string, ids []string) bool {
	isLogged := false
	for _, id := range ids {
		if i, ok := r.signers.Identity(id); ok {
			isLogged = true
			if identity.Predicates(i.May).Match(predicate) {
				return true
			}
		}
	}
	return !isLogged
}

// evaluate evaluates the expressions of all contracts on an attestation.
func (r *Replay) evaluate(e *policy.Evidence, payload []byte) {
	var statement *where.Statement
	for _, contract := range r.contracts {
		for _, x := range contract.Expressions(e) {
			if _, ok := r.verdicts[x][e.Attestation]; ok {
				continue
			}
			if statement == nil {
				statement = where.Read(payload)
			}
			r.verdicts.Add(x, e.Attestation, r.eval(x, statement))
		}
	}
}

func (r *Replay) eval(expression string, statement *where.Statement) policy.Verdict {
	program, ok := r.programs[expression]
	if !ok {
		program, _ = where.Compile(expression) // nil if another release accepted it
		r.programs[expression] = program
	}
	if program == nil {
		return policy.Verdict{Error: "the expression is not valid in this release"}
	}
	return policy.Verdict(program.Eval(statement))
}

// Policy adds the event of a version of the contract. The error says that the ledger shows
// another contract.
func (r *Replay) Policy(e ledger.PolicyEvent) error {
	r.versions = append(r.versions, version{e.Version, r.now(e.Timestamp)})
	contract, ok := r.contracts[e.Version]
	if !ok {
		return nil
	}
	return verify.Contract(contract.Digest(), contract.Rules, &e)
}

// State adds a state that a commit has reached.
func (r *Replay) State(e ledger.StateEvent) {
	c := r.commit(e.Commit)
	c.states = append(c.states, state{e.To, r.now(e.Timestamp), e.Cause})
}

// Standing adds a standing that a commit in DEPLOYED has reached.
func (r *Replay) Standing(e ledger.StandingEvent) {
	r.commit(e.Commit).standing = state{e.To, r.now(e.Timestamp), ledger.Cause{}}
}

// Commit adds an event of what is known of a commit. One that lists objects is about what the ledger has learnt of the
// history alone.
func (r *Replay) Commit(e ledger.CommitEvent) {
	now := r.now(e.Timestamp)
	for _, sha := range e.Objects {
		r.objects.learn(sha, now)
	}
	if e.Objects != nil {
		return
	}

	c := r.learn(e.Commit, e.Timestamp)
	if c.tree == "" && e.Tree != "" { // an object never changes
		r.addToTree(c, e.Tree)
		r.objects.learn(c.sha, now)
		c.proven = now
	}
	c.digest, c.tree, c.logged = e.Facts, e.Tree, now
}

// addToTree adds a commit to those with a tree. If reviews may carry between these, all of them are based, or none is.
func (r *Replay) addToTree(c *commit, tree string) {
	others := r.trees[tree]
	r.trees[tree] = append(others, c)
	switch {
	case !r.basesCarry || len(others) == 0:
	case others[0].isBased:
		r.noteBased(c)
	case c.isBased:
		r.noteBased(others...)
	}
}

// Needs returns the commits of which Known must be called before a commit's state is derived: itself, all that
// deployments shipped if what it shipped is asked for, those with the same tree, and those that claims of merges name,
// down the mainline. It does not return again what is below a commit to which an earlier call has come, and the
// deliveries. Objects must have been added.
func (r *Replay) Needs(sha string) []string {
	var list []string
	isListed := make(map[string]bool)
	add := func(c *commit) {
		if !isListed[c.sha] {
			isListed[c.sha] = true
			list = append(list, c.sha)
		}
	}
	mainline := []*commit{r.commit(sha)}
	if mainline[0].ships && !r.hasDelivered {
		r.hasDelivered = true
		mainline = append(mainline, r.delivered()...)
	}
	first := len(mainline) - 1
	for n := 0; n < len(mainline) && n-first <= r.maxMainline; n++ {
		c := mainline[n]
		add(c)
		for _, other := range r.siblings(c) {
			add(other)
		}

		for i := range c.recs {
			if m := c.recs[i].merge; m != nil && !c.isFollowed {
				add(r.commit(m.Source.SHA))
				mainline = append(mainline, r.commit(m.Parent.SHA))
			}
		}
		c.isFollowed = true
	}
	return list
}

// delivered returns the commits that were deployed, and those that lead to the ones whose deliveries are judged.
func (r *Replay) delivered() (list []*commit) {
	var stack []string
	for _, a := range r.acts {
		list = append(list, a.commit)
		if a.commit.ships {
			stack = append(stack, a.commit.sha)
		}
	}

	for seen := make(map[string]bool); len(stack) > 0; {
		sha := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[sha] {
			continue
		}
		seen[sha] = true

		if c := r.commits[sha]; c != nil && c.first.at != 0 {
			list = append(list, c)
		}
		if o := r.objects.read[sha]; o != nil {
			stack = append(stack, o.Parents...)
		}
	}
	return list
}

// siblings returns the other commits with the tree of a commit.
func (r *Replay) siblings(c *commit) (list []*commit) {
	if c.tree == "" {
		return nil
	}
	for _, other := range r.trees[c.tree] {
		if other != c {
			list = append(list, other)
		}
	}
	return list
}

// Transitions returns the transitions of a commit, the first one first.
func (r *Replay) Transitions(sha string) (list []ledger.Transition) {
	from := ledger.Draft
	for _, s := range r.commit(sha).states {
		list = append(list, ledger.Transition{From: from, To: s.to, At: s.at, Cause: s.cause})
		from = s.to
	}
	return list
}

// IsKnown reports whether Known was called for a commit, and returned no error.
func (r *Replay) IsKnown(sha string) bool { return r.commit(sha).known != nil }

// Known adds the record of a commit that the ledger shows. The error says that it is not what
// the log has of the commit.
func (r *Replay) Known(shown *ledger.Commit) error {
	known := facts.Of(shown)
	c := r.commit(shown.SHA)
	if err := verify.Facts(known, c.digest); err != nil {
		return err
	}
	c.known, c.paths = &known, facts.ClaimedPaths(shown)
	return nil
}
