package start

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/internal/cli"
	"github.com/ledgerd/ledgerd/ledger/forge"
)

// The configurations of CI that init writes. @REPO@ and @SERVER@ are replaced.
var (
	//go:embed ci/actions.yaml
	actionsYAML string
	//go:embed ci/gitlab.yaml
	gitlabYAML string
)

// createCI writes or prints a CI configuration that records the result of tests.
func (s *setup) createCI(context.Context, *cli.Connection) error {
	kind := s.ci
	if kind == "print" {
		kind = string(forge.Detect(s.remote.WebURL))
	}
	file, text := ".github/workflows/ledgerd.yaml", actionsYAML
	switch kind {
	case "gitlab":
		file, text = ".gitlab-ci.yml", gitlabYAML
	case "gitea":
		file = ".gitea/workflows/ledgerd.yaml"
	case "forgejo":
		file = ".forgejo/workflows/ledgerd.yaml"
	}

	server := s.server
	if server == "" {
		server = "https://ledger.example"
	}
	text = strings.NewReplacer("@REPO@", s.org+"/"+s.repo, "@SERVER@", server).Replace(text)
	if s.ci != "print" {
		return s.create("file", file, []byte(text))
	}
	fmt.Fprintf(s.p.Hints(), "For CI, write this to %s, or run init with --ci:\n\n%s\n", file, text)
	return nil
}
