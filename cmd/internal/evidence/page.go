package evidence

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// pageVersion is the version of the page. Increase it with every change of what it says: an older
// page is then not compared with what this version would write.
const pageVersion = 1

//go:embed page.html
var pageText string

// A Page is what PageFile shows.
type Page struct {
	Manifest Manifest
	Log      LogPage
	Commits  []commitPage
}

// A LogPage is what the page says of the log.
type LogPage struct {
	Origin, Key string
	Size        int64
}

// A commitPage is what the page says of a commit.
type commitPage struct {
	SHA, Message, Branch string
	Author               ledger.Author
	State                ledger.State
	Since, RegisteredAt  ledger.Time
	PolicyVersion        int
	HasReceipt           bool
	Requirements         []requirementPage
	Transitions          []ledger.Transition
	Attestations         []attestationPage
}

type requirementPage struct {
	State   ledger.State
	Text    string
	Met     bool
	Applies bool
	Signers []string
	Reason  string
}

type attestationPage struct {
	ID, Predicate, Signer, Identity, Event string
	Status                                 ledger.Status
	RecordedAt                             ledger.Time
	Distrusted                             bool
	Envelope, Statement, Assertion         string // names of files; empty if they are not there
}

// Add adds a commit, given which files there are.
func (p *Page) Add(of Commit, has func(name string) bool) {
	c := of.Record
	v := commitPage{
		SHA: c.SHA, Message: firstLine(c.Message), Branch: c.Branch, Author: c.Author, State: c.State, Since: c.StateSince,
		RegisteredAt: c.RegisteredAt, PolicyVersion: c.PolicyVersion, HasReceipt: has(CommitFile(c.SHA, receiptFile)),
		Transitions: of.Transitions,
	}
	for _, r := range c.Requirements {
		text := r.Predicate
		if r.Name != "" {
			text = r.Name + " (" + r.Predicate + ")"
		}
		v.Requirements = append(v.Requirements, requirementPage{State: r.State, Text: text, Met: r.Met, Applies: r.Applies,
			Signers: r.SignersCounted, Reason: r.Reason})
	}

	for _, a := range of.Attestations {
		shown := attestationPage{ID: a.ID, Predicate: a.Predicate, Signer: a.Signer, Identity: a.Identity, Event: a.Event,
			Status: a.Result.Status, RecordedAt: a.RecordedAt, Distrusted: a.Distrusted}
		for _, name := range []string{envelopeFile, objectFile} {
			if name = AttestationFile(c.SHA, a.ID, name); has(name) {
				shown.Envelope = name
			}
		}
		if name := AttestationFile(c.SHA, a.ID, statementFile); has(name) {
			shown.Statement = name
		}
		if name := AttestationFile(c.SHA, a.ID, assertionFile); has(name) {
			shown.Assertion = name
		}
		v.Attestations = append(v.Attestations, shown)
	}
	p.Commits = append(p.Commits, v)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// Render returns the page: HTML without scripts, in which everything is escaped.
func (p *Page) Render() ([]byte, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"short":  func(sha string) string { return sha[:min(len(sha), 12)] },
		"lower":  func(v fmt.Stringer) string { return strings.ToLower(v.String()) },
		"event":  EventFile,
		"proof":  ProofFile,
		"commit": CommitFile,
		"policy": PolicyFile,
	}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("write %s: %w", PageFile, err)
	}
	return b.Bytes(), nil
}
