package ledger

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger/forge"
)

func TestNewRepoCheck(t *testing.T) {
	const url = "https://github.com/acme/api"
	for name, test := range map[string]struct {
		repo  NewRepo
		field string
	}{
		"a name":               {NewRepo{Name: "api"}, ""},
		"a name and branch":    {NewRepo{Name: "api", DefaultBranch: "trunk"}, ""},
		"no name":              {NewRepo{}, "name"},
		"a parent folder":      {NewRepo{Name: ".."}, "name"},
		"an invalid branch":    {NewRepo{Name: "api", DefaultBranch: "-main"}, "default_branch"},
		"a slash in a name":    {NewRepo{Name: "a/b"}, "name"},
		"a web URL":            {NewRepo{Name: "api", WebURL: url}, ""},
		"a web URL and forge":  {NewRepo{Name: "api", WebURL: url, Forge: forge.Gitea}, ""},
		"no web page":          {NewRepo{Name: "api", WebURL: "git@github.com:acme/api.git"}, "web_url"},
		"an unknown forge":     {NewRepo{Name: "api", WebURL: url, Forge: "sourcehut"}, "forge"},
		"a forge and no place": {NewRepo{Name: "api", Forge: forge.GitHub}, "forge"},
	} {
		t.Run(name, func(t *testing.T) { wantFieldFault(t, test.repo.Check(), test.field) })
	}
}

func TestRepoChange(t *testing.T) {
	const github, elsewhere = "https://github.com/acme/api", "https://git.acme.example/api"
	none, gitea, unknown := forge.Kind(""), forge.Gitea, forge.Kind("cvs")
	linked := Repo{Name: "api", WebURL: github, Forge: forge.GitHub}
	for name, test := range map[string]struct {
		before       Repo
		change       RepoChange
		url          string
		kind         forge.Kind
		invalidField string
	}{
		"nothing":               {linked, RepoChange{}, github, forge.GitHub, ""},
		"nothing of no forge":   {Repo{}, RepoChange{}, "", "", ""},
		"the first URL":         {Repo{}, RepoChange{WebURL: new(github + ".git/")}, github, forge.GitHub, ""},
		"another host":          {linked, RepoChange{WebURL: new(elsewhere)}, elsewhere, forge.Other, ""},
		"another of a kind":     {linked, RepoChange{WebURL: new(elsewhere), Forge: &gitea}, elsewhere, gitea, ""},
		"the kind":              {linked, RepoChange{Forge: &gitea}, github, forge.Gitea, ""},
		"the default kind":      {Repo{WebURL: github, Forge: gitea}, RepoChange{Forge: &none}, github, forge.GitHub, ""},
		"removed":               {linked, RepoChange{WebURL: new("")}, "", "", ""},
		"a kind without a URL":  {Repo{}, RepoChange{Forge: &gitea}, "", "", "forge"},
		"removed with a kind":   {linked, RepoChange{WebURL: new(""), Forge: &gitea}, "", "", "forge"},
		"an unknown kind":       {linked, RepoChange{Forge: &unknown}, "", "", "forge"},
		"a URL with a password": {linked, RepoChange{WebURL: new("https://a:b@github.com/x/y")}, "", "", "web_url"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.change.Apply(test.before)
			wantFieldFault(t, err, test.invalidField)
			if err == nil && (got.WebURL != test.url || got.Forge != test.kind) {
				t.Errorf("the repo is at %q of %q, want %q of %q", got.WebURL, got.Forge, test.url, test.kind)
			}
		})
	}

	if got := linked.Site().Branch("main"); got != github+"/tree/main" {
		t.Errorf("the branch is at %q", got)
	}
}

func TestRetentionChange(t *testing.T) {
	before := Repo{Name: "api", Retention: Retention{Envelopes: 48 * Duration(time.Hour)}}
	for name, test := range map[string]struct {
		change RetentionChange
		want   Retention
		field  string
	}{
		"nothing": {RetentionChange{}, before.Retention, ""},
		"another field": {RetentionChange{Events: new(MinRetention)},
			Retention{before.Retention.Envelopes, MinRetention, 0}, ""},
		"each field": {RetentionChange{new(MinRetention), new(MinRetention), new(MinRetention)},
			Retention{MinRetention, MinRetention, MinRetention}, ""},
		"no limit": {RetentionChange{Envelopes: new(Duration(0))}, Retention{}, ""},
		"less than a day": {RetentionChange{Deliveries: new(MinRetention - 1)}, before.Retention,
			"retention.deliveries"},
		"envelopes for a tick": {RetentionChange{Envelopes: new(Duration(1))}, before.Retention, "retention.envelopes"},
		"a negative time":      {RetentionChange{Events: new(-MinRetention)}, before.Retention, "retention.events"},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := RepoChange{Retention: &test.change}.Apply(before)
			wantFieldFault(t, err, test.field)
			if after.Retention != test.want {
				t.Errorf("the repo keeps %+v, want %+v", after.Retention, test.want)
			}
		})
	}
}

// Since when states are to be derived again may not be known, after an upgrade.
func TestUnsettledWithoutATime(t *testing.T) {
	body, err := json.Marshal(Unsettled{Failing: true})
	if err != nil {
		t.Fatal(err)
	}
	var u Unsettled
	if err := json.Unmarshal(body, &u); err != nil || !u.Failing {
		t.Errorf("%s is read as %+v: %v", body, u, err)
	}
}
