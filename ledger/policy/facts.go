package policy

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
)

// Evidence is the part of an attestation that Derive needs.
type Evidence struct {
	Attestation   string // the attestation's id; ids ascend
	Predicate     string
	PredicateType string
	// Slot is what the attestation is about in addition to the commit, such as an image.
	Slot string
	// Base is the commit from which on a review or a change record is about the changes, as its signer says. It is
	// empty if a review is about the commit alone.
	Base   string
	Signer identity.DN
	// Person identifies the person of the signer. Identities with a common key or DN are
	// one person. It is 0 if only the DN is known.
	Person int64
	// Individual identifies who counts. People with a common name, e-mail address or login are
	// one individual (see [identity.Individuals]). It is 0 if that is the person alone.
	Individual int64
	Emails     []string
	Status     ledger.Status
	RecordedAt ledger.Time
	// FinishedAt is when the signer says that the check finished; 0 if not stated.
	FinishedAt ledger.Time
	// Passkey reports whether the signer has confirmed the statement with a passkey.
	Passkey bool
	// Distrusted reports whether the evidence does not count, but may have replaced a failure
	// that is not found again yet. It blocks, whatever its status.
	Distrusted bool
	// Source is the commit that it is about: 0 for the commit itself, else the number of
	// the source, counted from 1.
	Source int
	// WhilePromotable reports whether the commit was PROMOTABLE when the attestation
	// was recorded, and the gate of its environment was not shut by a rollback. Only then can
	// it count for DEPLOYED.
	WhilePromotable bool
	// Reason is why the commit was rolled back, or is deployed again.
	Reason string
	// Paths are those of a change record: all in which the commit differs from Base.
	Paths []string
}

// isChanges reports whether e is a change record.
func (e *Evidence) isChanges() bool { return e.PredicateType == ledger.ChangesType }

// A person is a signer as policies count them: all identities of one person.
type person struct {
	id int64
	dn identity.DN // if id is 0
}

func (e *Evidence) person() person {
	if e.Person != 0 {
		return person{id: e.Person}
	}
	return person{dn: e.Signer}
}

// samePerson reports whether both are of one person. It is faster than comparing the
// results of person.
func (e *Evidence) samePerson(other *Evidence) bool {
	return e.Person == other.Person && (e.Person != 0 || e.Signer == other.Signer)
}

// individual returns who counts: the people who are one individual count once.
func (e *Evidence) individual() person {
	if e.Individual != 0 {
		return person{id: e.Individual}
	}
	return e.person()
}

// sameIndividual reports whether both are of one individual. It is faster than comparing the
// results of individual.
func (e *Evidence) sameIndividual(other *Evidence) bool {
	if e.Person == 0 && e.Individual == 0 {
		return other.Person == 0 && other.Individual == 0 && e.Signer == other.Signer
	}
	return e.individual().id == other.individual().id
}

// Facts is the part of a commit that Derive needs.
type Facts struct {
	// Authors holds everybody who wrote the commit: its author, its committer and its
	// co-authors. It is empty if its author is unknown.
	Authors []ledger.Author
	// Proven reports whether Authors are those that the commit's object names.
	Proven bool
	// AuthorPeople holds the individuals, as in Evidence.Individual, who are known to have
	// written the commit: one who signed its object, or one with another identity that has the
	// name of an author.
	AuthorPeople []int64
	// SigningKeys are the fingerprints of the keys that signed the commit, and KnownAuthors
	// those among them, and among AuthorNames, that any signer of the org has.
	SigningKeys, KnownAuthors []string
	// RegisteredAt is when the ledger first learnt of the commit. It is zero if it does not know
	// it yet: if it learns of it now.
	RegisteredAt ledger.Time
	// Branch is the branch the commit was registered for.
	Branch string
	// Targets holds the branches that the commit is meant for (see TargetRule). A
	// requirement with branches applies if any of them matches.
	Targets []string
	// Target is the target that was claimed last, or the default branch. The radar uses it.
	Target string
	// Changes holds the changed paths that registrations claim, including the old paths of renames. HasChanges
	// reports whether any does; if not, Changes is ignored, and so it is if the contract SignsChanges.
	Changes    []string
	HasChanges bool
	// ManyChanges reports whether there are more paths than globs are matched with. Changes may then
	// be empty.
	ManyChanges bool
	// Evidence holds at least the latest attestation of each person for each predicate
	// and slot. Others that it holds are ignored.
	Evidence []Evidence
	// Spans says who wrote the commits that a review of the commit is about, by its base, as Source.Spans does.
	Spans map[string]*authors.Authorship
	// Sources holds the commits whose evidence may carry, and Carried the latest evidence of
	// each person for each predicate and slot on them: at least the latest of all commits
	// with the same tree, and the latest of each merged commit. Evidence.Source says
	// which it is of. They are used only if Contract.Carries.
	Sources []Source
	Carried []Evidence
	// Incomplete says why evidence that may carry is missing from Carried. It is empty if
	// none is.
	Incomplete string
	// NotCarried says why evidence that might carry does not, because it is too much. It is
	// empty if it is not.
	NotCarried string
	// Attested reports whether the commit has any attestation.
	Attested bool
	// Deployed reports whether the commit is DEPLOYED and was not rolled back.
	Deployed bool
	// Overlaps holds the commit's open overlaps with earlier commits. It is used only if
	// conflicts.Settings.Blocks.
	Overlaps []conflicts.Open
	// Verdicts holds what expressions say of the evidence, for every Requirement.Expression.
	Verdicts Verdicts
	// Exceptions holds the exceptions recorded for the commit, by anybody. It is used only
	// if Contract.Exceptions allows any.
	Exceptions []Exception
}

// A Source is another commit of the repo whose evidence may carry to the commit.
type Source struct {
	// Commit is its id.
	Commit string
	authors.Authorship
	// Spans says who wrote the commits that a review of the source is about, by its base. It has only bases that
	// are ancestors of the source, and only if the objects of all commits between are known.
	Spans map[string]*authors.Authorship
	// SameTree reports whether its proven tree is that of the commit. Bases then says of the bases in Spans whether
	// all parents of the commit contain them, if a requirement asks for that.
	SameTree bool
	Bases    map[string]bool
	// Claims are the claims that the commit is a clean merge of the source.
	Claims []MergeClaim
}

// A MergeClaim says that a commit is a clean merge of a commit of the mainline with another commit, the source.
type MergeClaim struct {
	Attestation string
	Kind        string
	Signer      identity.DN
	// Person and Individual are those of the signer, as in Evidence.
	Person, Individual int64
	// Side is the commit of the mainline. It is nil if the claim is of an early release, for which ParentState
	// counts.
	Side *Side
	// ParentState is the state of the first parent, a proven one, when a claim of an early release was recorded. It
	// is DRAFT if the parent was not proven.
	ParentState ledger.State
}

// A Side is the commit of the mainline that a claim of a merge names.
type Side struct {
	Commit string
	// Refused is why nothing carries by the claim. It is empty if something may.
	Refused string
	Met     Met
	// Bases has the bases of reviews of the source that the commit contains: it is one of them, or their
	// descendant.
	Bases map[string]bool
	// Wrote says who wrote the commit that is claimed to be a clean merge, in addition to those who wrote the source:
	// not the committer, nor who has pressed the button of a merge. It is nil if nobody did.
	Wrote *authors.Authorship
}

// Met says until when a commit meets the requirements of a contract, as the age of the evidence alone decides it: by
// the key of the requirement. One that is not met is not in it.
type Met map[string]ledger.Time

// Verdicts holds what expressions say of attestations, by expression and by attestation.
type Verdicts map[string]map[string]Verdict

// Add adds what an expression says of an attestation.
func (v Verdicts) Add(expression, attestation string, verdict Verdict) {
	if v[expression] == nil {
		v[expression] = make(map[string]Verdict)
	}
	v[expression][attestation] = verdict
}

// A Verdict is what a Requirement.Expression says of a statement. Without one, the expression
// was not evaluated yet, and the evidence does not count.
type Verdict struct {
	True bool
	// Error is why the expression could not be evaluated. It is empty if it was.
	Error string
}

// An Exception stands in for one requirement of one commit until it ends.
type Exception struct {
	Attestation string // the attestation's id; ids ascend
	// Requirement is the name of the requirement.
	Requirement string
	Signer      identity.DN
	Reason      string
	RecordedAt  ledger.Time
	// Until is when it ends. An exception that ends when it is recorded, or before, ends
	// its predecessor.
	Until ledger.Time
}
