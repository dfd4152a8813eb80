package page

import (
	"errors"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// maxRepoChoices is the maximum number of repos to choose from.
const maxRepoChoices = 500

// RepoChoices returns the repos of the org for a filter, and the chosen one if it is not among
// them.
func (v *Visit) RepoChoices(chosen string) ([]Choice, error) {
	list, err := v.API.ReposPage(v.Ctx(), v.Org, client.Query{Limit: maxRepoChoices})
	if err != nil {
		return nil, err
	}
	choices := Choices("", "All repos")
	for _, r := range list.Data {
		choices = append(choices, Choice{Value: r.Name, Label: r.Name})
	}
	if !slices.ContainsFunc(choices, func(c Choice) bool { return c.Value == chosen }) {
		choices = append(choices, Choice{Value: chosen, Label: chosen})
	}
	return choices, nil
}

// ExplainCommit records an error about the field commit of a filter, which selects a commit by the
// beginning of its ID: it is not one, no commit has it, or several have. It returns false, and
// records nothing, for other errors.
func ExplainCommit(f *Form, err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || f.Get("commit") == "" {
		return false
	}
	message := ""
	switch e.Problem.Code {
	case ledger.CodeNotFound, ledger.CodeAmbiguousCommit:
		message = e.Problem.Detail
	}
	for _, field := range e.Problem.Errors {
		if field.Field == "commit" {
			message = field.Message
		}
	}
	if message == "" {
		return false
	}

	f.Status = e.Status
	f.Fail("commit", message)
	return true
}
