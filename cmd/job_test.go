package cmd

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ledgerd/ledgerd/internal/must"
)

// recordedJobs has the environments of CI jobs.
const recordedJobs = "internal/ci/testdata"

// readJob returns the variables of a recorded job, and its event if it has one. The commits
// are those of HEAD_SHA, MERGE_SHA and BASE_SHA, and the branch is JOB_BRANCH, if that is set.
func readJob(name string, getenv func(string) string) (variables []string, event string, err error) {
	branch := cmp.Or(getenv("JOB_BRANCH"), "feature/login")
	shas := strings.NewReplacer("feature/login", branch,
		"8f1d6a9c4b7e2305d1c8a6f4e9b27035c6d8e1fa", getenv("HEAD_SHA"),
		"c02be7f1935a84d6e07b5c19f3a2d8e46b9071fd", getenv("MERGE_SHA"),
		"3a7c5e9102f4b6d8837a1c0e5f92b4d6a8c3e1f7", getenv("BASE_SHA"))
	text, err := os.ReadFile(filepath.Join(recordedJobs, name+".env"))
	if err != nil {
		return nil, "", err
	}
	variables = strings.Split(strings.TrimSpace(shas.Replace(string(text))), "\n")
	if text, err := os.ReadFile(filepath.Join(recordedJobs, name+".json")); err == nil {
		event = shas.Replace(string(text))
	}
	return variables, event, nil
}

// jobVariables are the names of all variables of recorded jobs.
func jobVariables() (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(recordedJobs, "*.env"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			name, _, _ := strings.Cut(line, "=")
			names = append(names, name)
		}
	}
	return names, nil
}

func scriptJob(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: job [NAME]")
	}
	names, err := jobVariables()
	ts.Check(err)
	for _, name := range names {
		ts.Setenv(name, "")
	}
	if len(args) == 0 {
		return
	}

	variables, event, err := readJob(args[0], ts.Getenv)
	ts.Check(err)
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		ts.Setenv(name, value)
	}
	if event != "" {
		file := filepath.Join(ts.Getenv("WORK"), "event.json")
		ts.Check(os.WriteFile(file, []byte(event), 0o600))
		ts.Setenv("GITHUB_EVENT_PATH", file)
	}
}

// The tests must not depend on the CI job that runs them: scripts have their own
// environment, and no other test may see the variables of a job.
func TestScriptsAreInNoJob(t *testing.T) {
	names, err := jobVariables()
	must.OK(t, err)
	env := &testscript.Env{WorkDir: t.TempDir()}
	must.OK(t, setVariables(env))
	for _, name := range names {
		if env.Getenv(name) != "" {
			t.Errorf("a script has the variable %s", name)
		}
	}
}
