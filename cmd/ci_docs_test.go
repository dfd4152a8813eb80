package cmd

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// ciDocs has the examples for CI systems.
const ciDocs = "../docs/ci"

// TestCIDocs runs the examples in docs/ci as far as a shell can run them: the commands of
// their jobs, in clones as the CI systems make them, with a server on loopback.
func TestCIDocs(t *testing.T) {
	testenv.From(t, testenv.Push, "takes a minute")
	if runtime.GOOS == "windows" {
		t.Skip("the examples are for a Unix shell")
	}
	testenv.Need(t, "bash")
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel() // but one example after the other: they all have the key in /tmp/ci.key
	actions := func(example, pull, push string) []string {
		return []string{"TEST=test", "RECORD=record", "FAILED=record", "DEPLOY=deploy", "EXAMPLE=" + example,
			"PULL_REQUEST=" + pull, "PUSH=" + push}
	}
	for name, variables := range map[string][]string{
		"GitHub":  actions("github.yml", "github_pull_request", "github_push"),
		"Gitea":   actions("gitea.yml", "gitea_pull_request", "gitea_push"),
		"Forgejo": actions("gitea.yml", "forgejo_pull_request", "gitea_push"),
		"GitLab": {"TEST=test", "RECORD=record passed tests", "FAILED=record failed tests", "DEPLOY=deploy",
			"EXAMPLE=gitlab-ci.yml", "PULL_REQUEST=gitlab_merged_result", "PUSH=gitlab_push"},
		"Jenkins": {"TEST=Test", "RECORD=Record", "FAILED=Record", "DEPLOY=Deploy",
			"EXAMPLE=Jenkinsfile", "PULL_REQUEST=jenkins_pull_request", "PUSH=jenkins_push"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "GitHub" && name != "GitLab" {
				testenv.From(t, testenv.Full, "takes ten seconds")
			}
			runExample(t, "testdata/ci_docs.txtar", variables)
		})
	}
}

// runExample runs a script with an example, which the variables name.
func runExample(t *testing.T, script string, variables []string) {
	testscript.Run(t, testscript.Params{
		Files:               []string{script},
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, variables...)
			return setUpScript(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits, "await": scriptAwait, "grab": scriptGrab, "job": scriptJob, "get": scriptGet,
			"example": scriptExample, "manifest": scriptManifest,
		},
	})
}

// TestMainlineJobs runs the jobs of docs/ci that claim merges, from a click on "Update branch" to a gate that opens.
func TestMainlineJobs(t *testing.T) {
	testenv.From(t, testenv.Push, "takes some seconds")
	if runtime.GOOS == "windows" {
		t.Skip("the examples are for a Unix shell")
	}
	testenv.Need(t, "bash")
	t.Parallel()
	for name, variables := range map[string][]string{
		"GitHub": {"EXAMPLE=github-mainline.yml", "AFTER_TESTS=github_workflow_run", "PUSH=github_push",
			"SCHEDULE=github_schedule"},
		"GitLab": {"EXAMPLE=gitlab-ci.yml", "AFTER_TESTS=gitlab_push", "PUSH=gitlab_push", "SCHEDULE=gitlab_push"},
	} {
		t.Run(name, func(t *testing.T) { runExample(t, "testdata/ci_mainline.txtar", variables) })
	}
}

// A step is a shell script of an example, with its variables.
type step struct {
	shell []string
	run   string
	env   map[string]string
}

// scriptExample runs the steps of a job of $EXAMPLE, except those that install ledgerd.
func scriptExample(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] example JOB")
	}
	text, err := os.ReadFile(filepath.Join(ciDocs, ts.Getenv("EXAMPLE")))
	ts.Check(err)
	steps, err := readSteps(ts.Getenv("EXAMPLE"), text, args[0])
	ts.Check(err)
	if len(steps) == 0 {
		ts.Fatalf("%s has no steps in %q", ts.Getenv("EXAMPLE"), args[0])
	}

	for _, s := range steps {
		for name, value := range s.env {
			ts.Setenv(name, expand(ts, value))
		}
		file := filepath.Join(ts.Getenv("WORK"), "step.sh")
		ts.Check(os.WriteFile(file, []byte(s.run), 0o600))
		if err := ts.Exec(s.shell[0], append(s.shell[1:], file)...); err != nil && !neg {
			ts.Fatalf("%v in\n%s", err, s.run)
		} else if err != nil {
			return
		}
	}
	if neg {
		ts.Fatalf("the job %s has passed", args[0])
	}
}

// readSteps returns the steps of a job of an example.
func readSteps(name string, text []byte, job string) ([]step, error) {
	switch name {
	case "Jenkinsfile":
		return jenkinsSteps(string(text), job), nil
	case "gitlab-ci.yml":
		return gitLabSteps(text, job)
	}

	var workflow struct {
		Jobs map[string]struct {
			Env   map[string]string `yaml:"env"`
			Steps []struct {
				Name string            `yaml:"name"`
				Run  string            `yaml:"run"`
				Env  map[string]string `yaml:"env"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	err := yaml.Unmarshal(text, &workflow)
	var steps []step
	for _, s := range workflow.Jobs[job].Steps {
		if s.Run == "" || s.Name == "Install ledgerd" {
			continue
		}
		env := maps.Clone(workflow.Jobs[job].Env)
		if env == nil {
			env = make(map[string]string)
		}
		maps.Copy(env, s.Env)
		steps = append(steps, step{[]string{"bash", "-e"}, s.Run, env})
	}
	return steps, err
}

// gitLabSteps returns the script of a job, with what it extends.
func gitLabSteps(text []byte, job string) ([]step, error) {
	var all map[string]yaml.Node
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, err
	}

	s := step{shell: []string{"bash", "-eo", "pipefail"}, env: make(map[string]string)}
	for job != "" {
		var j struct {
			Extends   string            `yaml:"extends"`
			Script    []string          `yaml:"script"`
			Variables map[string]string `yaml:"variables"`
		}

		node, ok := all[job]
		if !ok {
			return nil, fmt.Errorf("no job %q", job)
		}
		if err := node.Decode(&j); err != nil {
			return nil, err
		}
		if s.run == "" {
			s.run = strings.Join(j.Script, "\n")
		}
		maps.Copy(s.env, j.Variables)
		job = j.Extends
	}
	return []step{s}, nil
}

// jenkinsSteps returns the shell scripts of a stage.
func jenkinsSteps(text, stage string) (steps []step) {
	_, text, _ = strings.Cut(text, "stage('"+stage+"')")
	text, _, _ = strings.Cut(text, "stage('")
	for _, match := range regexp.MustCompile(`(?s)sh '''(.*?)'''|sh\(script: '(.*?)'`).FindAllStringSubmatch(text, -1) {
		steps = append(steps, step{shell: []string{"sh", "-xe"}, run: match[1] + match[2]})
	}
	return steps
}

// expand replaces the expressions of a workflow by what they stand for in this test.
func expand(ts *testscript.TestScript, value string) string {
	return regexp.MustCompile(`\$\{\{ (.*?) \}\}`).ReplaceAllStringFunc(value, func(expression string) string {
		switch expression = strings.TrimSuffix(strings.TrimPrefix(expression, "${{ "), " }}"); expression {
		case "vars.LEDGERD_URL":
			return ts.Getenv("LEDGERD_URL")
		case "secrets.LEDGERD_TOKEN":
			return ts.Getenv("LEDGERD_TOKEN")
		case "secrets.LEDGERD_KEY":
			return ts.ReadFile(ts.Getenv("LEDGERD_KEY"))
		case "secrets.LEDGERD_MAINLINE_KEY":
			return ts.ReadFile(ts.Getenv("LEDGERD_MAINLINE_KEY"))
		case "secrets.LEDGERD_DEPLOY_KEY":
			return ts.ReadFile(ts.Getenv("LEDGERD_DEPLOY_KEY"))
		case "needs.test.result == 'success' && 'pass' || 'fail'":
			return ts.Getenv("STATUS")
		}
		ts.Fatalf("no value for the expression %q", expression)
		return ""
	})
}

// scriptManifest runs the container of docs/ci/argocd.yaml, with the image $IMAGE.
func scriptManifest(ts *testscript.TestScript, neg bool, _ []string) {
	var job struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Command, Args []string
					}
				}
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(ciDocs, "argocd.yaml"))
	ts.Check(err)
	ts.Check(yaml.Unmarshal(text, &job))
	container := job.Spec.Template.Spec.Containers[0]

	args := slices.Concat(container.Command[1:], container.Args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$(IMAGE)", ts.Getenv("IMAGE"))
		if args[i] == "2m" {
			args[i] = "1s"
		}
	}
	if err := ts.Exec(container.Command[0], args...); (err != nil) != neg {
		ts.Fatalf("%v: %v", args, err)
	}
}

// All examples are valid, and the manifest and the policy ask the ledger for the artifact as
// its API has it.
func TestCIDocsAreValid(t *testing.T) {
	files, err := filepath.Glob(ciDocs + "/*.y*ml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text := must.Read(t, file)
		var document map[string]any
		if err := yaml.Unmarshal(text, &document); err != nil || len(document) == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}

	readme := must.Read(t, ciDocs+"/README.md")
	entries := must.Get(os.ReadDir(ciDocs))(t)
	for _, entry := range entries {
		if entry.Name() != "README.md" && !strings.Contains(string(readme), "("+entry.Name()+")") {
			t.Errorf("docs/ci/README.md does not link %s", entry.Name())
		}
	}
	text := must.Read(t, ciDocs+"/kyverno.yaml")
	for _, want := range []string{"/v1/orgs/acme/artifacts/{{ digest }}/gate?state=PROMOTABLE&env=prod",
		"to_string(reached) || 'unknown'", `value: "true"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/ci/kyverno.yaml lacks %q", want)
		}
	}
}
