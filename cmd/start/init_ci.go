package start

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/ledger/forge"
)

// examples has the files of docs/ci.
//
//go:embed ci
var examples embed.FS

// createCI writes or prints a CI configuration that records the result of tests.
func (s *setup) createCI(context.Context, *cli.Connection) error {
	kind := s.ci
	if kind == "print" {
		kind = string(forge.Detect(s.webURL))
	}
	example, file := "github.yml", ".github/workflows/ledgerd.yml"
	switch kind {
	case "gitlab":
		example, file = "gitlab-ci.yml", ".gitlab-ci.yml"
	case "gitea":
		example, file = "gitea.yml", ".gitea/workflows/ledgerd.yml"
	case "forgejo":
		example, file = "gitea.yml", ".forgejo/workflows/ledgerd.yml"
	}

	text, err := examples.ReadFile("ci/" + example)
	if err != nil {
		return err
	}
	configuration := adapt(string(text), s.org+"/"+s.repo)
	if s.ci != "print" {
		return s.create("file", file, []byte(configuration))
	}
	fmt.Fprintf(s.p.Hints(), "For CI, write this to %s, or run init with --ci:\n\n%s\n", file, configuration)
	return nil
}

// adapt returns an example for a repo, without its deployment: who deploys how is another
// decision.
func adapt(example, repo string) string {
	if i := regexp.MustCompile(`(?m)^ *deploy:$`).FindStringIndex(example); i != nil {
		example = strings.TrimRight(example[:i[0]], "\n") + "\n"
	}
	_, jobs, _ := strings.Cut(example, "\n") // the name of the file
	const head = "# Variable: LEDGERD_URL. Secrets: LEDGERD_TOKEN, from .ledgerd/ci.token, and LEDGERD_KEY, from\n" +
		"# .ledgerd/ci.key. Replace ./test.sh. More, with a gate before a deployment: docs/ci of ledgerd\n"
	return head + strings.ReplaceAll(jobs, "acme/api", repo)
}
