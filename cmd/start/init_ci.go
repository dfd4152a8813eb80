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

// A configuration is an example, the path to write it to, and its first lines there.
type configuration struct{ example, file, head string }

// The first lines of configurations.
const (
	headOfTests = "# Variable: LEDGERD_URL. Secrets: LEDGERD_TOKEN, from .ledgerd/ci.token, and LEDGERD_KEY, from\n" +
		"# .ledgerd/ci.key. Replace ./test.sh. More, with a gate before a deployment: docs/ci of ledgerd\n"
	headOfMainline = "# Variable: LEDGERD_URL. Secrets of the environment mainline, for the default branch alone:\n" +
		"# LEDGERD_TOKEN, from .ledgerd/ci.token, and LEDGERD_MAINLINE_KEY, from .ledgerd/mainline.key.\n"
)

// configurations returns those of a kind of CI. The first records the result of tests.
func configurations(kind string) []configuration {
	switch kind {
	case "gitlab":
		return []configuration{{"gitlab-ci.yml", ".gitlab-ci.yml", headOfTests}}
	case "gitea":
		return []configuration{{"gitea.yml", ".gitea/workflows/ledgerd.yml", headOfTests}}
	case "forgejo":
		return []configuration{{"gitea.yml", ".forgejo/workflows/ledgerd.yml", headOfTests}}
	}
	return []configuration{
		{"github.yml", ".github/workflows/ledgerd.yml", headOfTests},
		{"github-mainline.yml", ".github/workflows/mainline.yml", headOfMainline},
	}
}

// claims reports whether the CI of the setup has a job of the mainline, which can keep its key from other branches.
func (s *setup) claims() bool { return s.ci == "github" || s.ci == "gitlab" }

// createCI writes the CI configuration, or prints the one that records the result of tests.
func (s *setup) createCI(context.Context, *cli.Connection) error {
	kind := s.ci
	if kind == "print" {
		kind = string(forge.Detect(s.webURL))
	}
	for _, c := range configurations(kind) {
		text, err := examples.ReadFile("ci/" + c.example)
		if err != nil {
			return err
		}
		adapted := c.head + adapt(string(text), s.org+"/"+s.repo)
		if s.ci == "print" {
			fmt.Fprintf(s.p.Hints(), "For CI, write this to %s, or run init with --ci:\n\n%s\n", c.file, adapted)
			return nil
		}
		if err := s.create("file", c.file, []byte(adapted)); err != nil {
			return err
		}
	}
	return nil
}

// adapt returns the jobs of an example for a repo, without its deployment: who deploys how is another
// decision.
func adapt(example, repo string) string {
	if i := regexp.MustCompile(`(?m)^ *deploy:$`).FindStringIndex(example); i != nil {
		example = strings.TrimRight(example[:i[0]], "\n") + "\n"
	}
	_, jobs, _ := strings.Cut(example, "\n") // the name of the file
	return strings.ReplaceAll(jobs, "acme/api", repo)
}
