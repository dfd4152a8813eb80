package web

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/arcdiagram"
	"github.com/ledgerd/ledgerd/server/web/form"
	"github.com/ledgerd/ledgerd/server/web/overlap"
	"github.com/ledgerd/ledgerd/server/web/page"
	"github.com/ledgerd/ledgerd/server/web/policytext"
)

const (
	radarOverlaps  = 30 // on a page
	radarTruncated = 3  // commits listed that have more overlaps than are stored
)

// A radarPage shows the overlaps of a repo's commits in flight.
type radarPage struct {
	Form     *form.Form
	Levels   []form.Choice
	Branches []string // suggestions for the filter
	Settings []policytext.Sentence
	Enabled  bool
	// InFlight reports whether any commits are in flight, if Overlaps is empty.
	InFlight bool
	Picture  *arcdiagram.Diagram // nil if there are no overlaps
	Overlaps []overlap.Overlap   // from the side of the later commit
	// Truncated are the first commits with more overlaps than are stored.
	// MoreTruncated counts the others.
	Truncated     []ledger.RadarCommit
	MoreTruncated int
	// Dropped reports whether weaker overlaps were not stored, if Overlaps is empty.
	Dropped  bool
	Next     string
	Filtered bool
	// Command prints the same list in a terminal.
	Command string
}

func showRadar(v *page.Visit) (*page.Response, error) {
	f := client.OverlapFilter{Branch: v.Query("branch"), Commit: strings.TrimSpace(v.Query("commit"))}
	if name := v.Query("level"); name != "" {
		level, err := radar.ParseLevel(name)
		if err != nil || level == radar.NoLevel {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidField, "level", "%q is not a level (use LOW, MEDIUM or HIGH)", name)
		}
		f.Level = level
	}

	policy, _, err := v.API.Policy(v.Ctx(), v.Org, v.Repo)
	if err != nil {
		return nil, err
	}
	p := radarPage{
		Form:     form.New("level", v.Query("level"), "branch", f.Branch, "commit", f.Commit),
		Levels:   form.Choices("", "All levels", "HIGH", "HIGH", "MEDIUM", "MEDIUM", "LOW", "LOW"),
		Settings: policytext.Radar(policy.Radar), Enabled: policy.Radar.Enabled,
		Filtered: f != client.OverlapFilter{}, Command: radarCommand(v, f),
	}

	err = readOverlaps(v, &p, f)
	if f.Commit != "" && explainCommit(p.Form, err) {
		resp := v.Page("radar", "Conflict Radar", p)
		resp.Status = p.Form.Status
		return resp, nil
	}
	if err != nil {
		return nil, err
	}
	return v.LivePage("radar", "Conflict Radar", p, ledger.EventTypes()...), nil
}

// explainCommit reports whether an error is about the commit of the filter. If
// so, it adds the error to the field.
func explainCommit(f *form.Form, err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return false
	}
	switch e.Problem.Code {
	case ledger.CodeNotFound, ledger.CodeAmbiguousCommit, ledger.CodeInvalidParameter:
		f.Status = e.Status
		message := e.Problem.Detail
		for _, field := range e.Problem.Errors {
			message = field.Message
		}
		f.Fail("commit", message)
		return true
	}
	return false
}

// plainWord matches words that need no quoting in a shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./@+-]*$`)

// radarCommand returns the command that lists the overlaps of a filter. It omits
// values that would need quoting.
func radarCommand(v *page.Visit, f client.OverlapFilter) string {
	command := "ledgerd radar " + v.Org + "/" + v.Repo
	if f.Level != radar.NoLevel {
		command += " --level " + f.Level.String()
	}
	for _, option := range []struct{ name, value string }{{"commit", f.Commit}, {"branch", f.Branch}} {
		if plainWord.MatchString(option.value) {
			command += " --" + option.name + " " + option.value
		}
	}
	return command
}

// readOverlaps fetches a page of overlaps and fills in the page. If there are
// none, it determines why.
func readOverlaps(v *page.Visit, p *radarPage, f client.OverlapFilter) error {
	list, err := page.Filled(client.Query{Limit: radarOverlaps, Cursor: v.Query("cursor")},
		func(q client.Query) (ledger.Page[ledger.RadarPair], error) {
			return v.API.OverlapsPage(v.Ctx(), v.Org, v.Repo, f, q)
		})
	if err != nil {
		return err
	}
	for _, pair := range list.Data {
		p.Overlaps = append(p.Overlaps, overlap.Of(pair.Commit.SHA, pair))
		for _, side := range []ledger.RadarCommit{pair.Commit, pair.Other} {
			if side.Branch != "" {
				p.Branches = append(p.Branches, side.Branch)
			}
		}
	}

	slices.Sort(p.Branches)
	p.Branches = slices.Compact(p.Branches)
	p.Next, p.Picture = v.NextPage(list.NextCursor), arcdiagram.Draw(list.Data)
	truncated := f.Truncated(list.Data)
	p.Truncated = truncated[:min(len(truncated), radarTruncated)]
	p.MoreTruncated = len(truncated) - len(p.Truncated)
	if len(list.Data) > 0 {
		return nil
	}

	if p.Dropped, err = v.API.OverlapsTruncated(v.Ctx(), v.Org, v.Repo, f); err != nil {
		return err
	}
	inFlight, err := page.Filled(client.Query{Limit: 1}, func(q client.Query) (ledger.Page[ledger.CommitSummary], error) {
		return v.API.CommitsPage(v.Ctx(), v.Org, v.Repo, client.CommitFilter{InFlight: true}, q)
	})
	p.InFlight = len(inFlight.Data) > 0
	return err
}
