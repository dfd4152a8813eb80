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
	"github.com/ledgerd/ledgerd/server/web/policytext"
)

const (
	// radarOverlaps is how many overlaps a page of the radar shows.
	radarOverlaps = 30
	// radarTruncated is how many commits it names that had more than are kept.
	radarTruncated = 3
)

// A radarPage shows which commits in flight of a repo collide.
type radarPage struct {
	Form     *form.Form
	Levels   []form.Choice
	Branches []string // to choose from
	Settings []policytext.Sentence
	Enabled  bool
	// InFlight tells that there are commits that could collide.
	InFlight bool
	Picture  *arcdiagram.Diagram // nil where there is nothing to draw
	Overlaps []overlap.Overlap   // each from the side of the later commit
	// Truncated are commits that had more overlaps than are kept.
	Truncated     []ledger.RadarCommit
	MoreTruncated int // that are not named
	// Dropped tells that Overlaps is empty, and that there were some that are
	// not kept.
	Dropped  bool
	Next     string
	Filtered bool
	// Command lists the same in a terminal.
	Command string
}

func showRadar(v *visit) (*answer, error) {
	f := client.OverlapFilter{Branch: v.query("branch"), Commit: strings.TrimSpace(v.query("commit"))}
	if name := v.query("level"); name != "" {
		level, err := radar.ParseLevel(name)
		if err != nil || level == radar.NoLevel {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidField, "level", "%q is not a level: use LOW, MEDIUM or HIGH", name)
		}
		f.Level = level
	}
	policy, _, err := v.api.Policy(v.ctx(), v.org, v.repo)
	if err != nil {
		return nil, err
	}
	page := radarPage{
		Form:     form.New("level", v.query("level"), "branch", f.Branch, "commit", f.Commit),
		Levels:   form.Choices("", "All levels", "HIGH", "HIGH", "MEDIUM", "MEDIUM", "LOW", "LOW"),
		Settings: policytext.Radar(policy.Radar), Enabled: policy.Radar.Enabled,
		Filtered: f != client.OverlapFilter{}, Command: v.radarCommand(f),
	}
	err = v.findOverlaps(&page, f)
	if f.Commit != "" && explainCommit(page.Form, err) {
		a := v.page("radar", "Conflict Radar", page)
		a.status = page.Form.Status
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	return v.livePage("radar", "Conflict Radar", page, ledger.EventTypes()...), nil
}

// explainCommit reports whether an error is about the commit that was asked
// for, and puts it beside the field.
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

// plainWord is what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./@+-]*$`)

// radarCommand writes the command that lists the overlaps which a filter lets
// pass.
func (v *visit) radarCommand(f client.OverlapFilter) string {
	command := "ledgerd radar " + v.org + "/" + v.repo
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

func (v *visit) findOverlaps(page *radarPage, f client.OverlapFilter) error {
	list, err := v.api.OverlapsPage(
		v.ctx(), v.org, v.repo, f, client.Query{Limit: radarOverlaps, Cursor: v.query("cursor")})
	if err != nil {
		return err
	}
	for _, pair := range list.Data {
		page.Overlaps = append(page.Overlaps, overlap.Of(pair.Commit.SHA, pair))
		for _, side := range []ledger.RadarCommit{pair.Commit, pair.Other} {
			if side.Branch != "" {
				page.Branches = append(page.Branches, side.Branch)
			}
		}
	}
	slices.Sort(page.Branches)
	page.Branches = slices.Compact(page.Branches)
	page.Next, page.Picture = nextPage(v, list.NextCursor), arcdiagram.Draw(list.Data)
	truncated := f.Truncated(list.Data)
	page.Truncated = truncated[:min(len(truncated), radarTruncated)]
	page.MoreTruncated = len(truncated) - len(page.Truncated)
	if len(list.Data) > 0 {
		return nil
	}
	if page.Dropped, err = v.api.OverlapsTruncated(v.ctx(), v.org, v.repo, f); err != nil {
		return err
	}
	flying, err := v.api.CommitsPage(v.ctx(), v.org, v.repo, client.CommitFilter{InFlight: true}, client.Query{Limit: 1})
	page.InFlight = len(flying.Data) > 0
	return err
}
