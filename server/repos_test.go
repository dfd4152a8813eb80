package server

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// A repo has the address of its pages and the kind of forge there, which its host names.
func TestRepoOfAForge(t *testing.T) {
	b := newBackend(t)
	const repos = "/v1/orgs/acme/repos"
	want := func(resp response, webURL, kind string) {
		t.Helper()
		repo := decode[ledger.Repo](resp)
		if repo.WebURL != webURL || string(repo.Forge) != kind || len(repo.Commits) != len(ledger.States()) {
			t.Errorf("got %+v, want %s of %s", repo, webURL, kind)
		}
	}
	want(b.get(repos+"/api").want(200), "", "")

	const github, own = "https://github.com/acme/web", "https://git.acme.example/acme/web"
	want(b.post(repos, `{"name":"web","web_url":"https://GitHub.com/acme/web.git"}`).want(201), github, "github")
	want(b.get(repos+"/web").want(200), github, "github")
	want(b.patch(repos+"/web", `{}`).want(200), github, "github")
	want(b.patch(repos+"/web", `{"web_url":"`+own+`","forge":"forgejo"}`).want(200), own, "forgejo")
	want(b.get(repos+"/web").want(200), own, "forgejo")
	want(b.patch(repos+"/web", `{"forge":""}`).want(200), own, "other")
	want(b.patch(repos+"/web", `{"web_url":""}`).want(200), "", "")
	want(b.get(repos+"/web").want(200), "", "")

	b.post(repos, `{"name":"x","web_url":"https://ada:pw@github.com/acme/x"}`).wantProblem(422, ledger.CodeInvalidField)
	b.get(repos+"/x").wantProblem(404, ledger.CodeNotFound)
	b.patch(repos+"/web", `{"web_url":"javascript:alert(1)"}`).wantProblem(422, ledger.CodeInvalidField)
	b.patch(repos+"/web", `{"forge":"cvs"}`).wantProblem(422, ledger.CodeInvalidField)
	b.patch(repos+"/web", `{"default_branch":"trunk"}`).wantProblem(400, ledger.CodeUnknownField)
	b.patch(repos+"/none", `{}`).wantProblem(404, ledger.CodeNotFound)
	b.send(request{method: "PATCH", path: repos + "/web", token: b.writer, body: "{}"}).
		wantProblem(403, ledger.CodeForbidden)
}
