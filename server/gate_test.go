package server

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// The gate of a commit answers whether it has reached a state now, and what is missing.
func TestGateOfACommit(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=dev,o=acme")
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"scan:*"},
		{"state":"PROMOTABLE","predicate":"docs:*","branches":["release/*"]},
		{"state":"DEPLOYED","predicate":"deploy:*"}]`)
	sha := commitID(1)
	b.register(sha, `{"target":"release/1"}`).want(201)
	want := func(query, answer string) {
		t.Helper()
		if got := strings.TrimSpace(string(b.get(commitPath(sha) + "/gate?" + query).want(200).body)); got != answer {
			t.Errorf("%s: %s\nwant %s", query, got, answer)
		}
	}

	want("state=ATTESTED", `{"reached":false,"required":"ATTESTED","state":"DRAFT","standing":"DRAFT",`+
		`"reasons":["ATTESTED: scan:*: 0 of 1 signatures"]}`)
	want("state=DRAFT", `{"reached":true,"required":"DRAFT","state":"DRAFT","standing":"DRAFT"}`)
	b.passes(ci, sha, "scan:image")
	want("state=PROMOTABLE&target=main",
		`{"reached":true,"required":"PROMOTABLE","state":"PROMOTABLE","standing":"PROMOTABLE"}`)
	want("state=PROMOTABLE", `{"reached":false,"required":"PROMOTABLE","state":"ATTESTED","standing":"ATTESTED",`+
		`"reasons":["PROMOTABLE: docs:*: 0 of 1 signatures"]}`)
	want("state=DEPLOYED&target=main", `{"reached":false,"required":"DEPLOYED","state":"PROMOTABLE",`+
		`"standing":"PROMOTABLE","reasons":["DEPLOYED: deploy:*: 0 of 1 signatures"]}`)

	b.passes(ci, sha, "docs:all")
	b.passes(ci, sha, "deploy:prod")
	etag := b.get(commitPath(sha) + "/gate?state=PROMOTABLE").want(200).header.Get("ETag")
	b.attest(ci.statement(t, sha, "scan:image", ledger.Fail, 1)).want(201)
	want("state=DEPLOYED", `{"reached":true,"required":"DEPLOYED","state":"DEPLOYED","standing":"VALIDATING"}`)
	want("state=PROMOTABLE", `{"reached":false,"required":"PROMOTABLE","state":"DEPLOYED","standing":"VALIDATING",`+
		`"reasons":["ATTESTED: scan:image failed (cn=ci,ou=dev,o=acme)"]}`)
	if now := b.get(commitPath(sha) + "/gate?state=PROMOTABLE").want(200).header.Get("ETag"); now == etag || etag == "" {
		t.Errorf("the ETag was %q, and is %q", etag, now)
	}

	prefix := b.get(commitPath(sha[:12]) + "/gate?state=PROMOTABLE").want(200)
	if whole := b.get(commitPath(sha) + "/gate?state=PROMOTABLE").want(200); !bytes.Equal(prefix.body, whole.body) {
		t.Errorf("by a prefix: %s\nwant %s", prefix.body, whole.body)
	}
	for _, query := range []string{"", "?state=", "?state=&target=main"} { // such as of an unset variable
		b.get(commitPath(sha)+"/gate"+query).wantFields(400, ledger.CodeInvalidParameter, "state")
		b.get(artifactsPath+"/"+image(1)+"/gate"+strings.ReplaceAll(query, "target=main", "repo=api")).
			wantFields(400, ledger.CodeInvalidParameter, "state")
	}
	b.get(commitPath(sha)+"/gate?state=READY").wantFields(400, ledger.CodeInvalidParameter, "state")
	b.get(commitPath(commitID(2)) + "/gate?state=DRAFT").want(404)
}

// A gate without an environment names those whose gate asks what a deployment ships, open or shut, from what is stored
// or from the evidence. A pattern names none.
func TestGateNamesDeliveries(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"scan:*"},
		{"state":"DEPLOYED","predicate":"deploy:*","delivery":true},
		{"state":"DEPLOYED","predicate":"deploy:prod","delivery":true},
		{"state":"DEPLOYED","predicate":"deploy:prod","delivery":true,"paths":["a/**"]},
		{"state":"DEPLOYED","predicate":"deploy:eu","delivery":true},
		{"state":"DEPLOYED","predicate":"deploy:us"},
		{"state":"DEPLOYED","predicate":"deploy:asia","delivery":true},
		{"state":"DEPLOYED","predicate":"deploy:test","delivery":true}]`)
	sha := commitID(1)
	b.register(sha, `{}`).want(201)
	want := []string{"prod", "eu", "asia"}
	for _, query := range []string{"state=DRAFT", "state=ATTESTED", "state=DRAFT&target=main", "state=DRAFT&env=prod"} {
		g := decode[ledger.Gate](b.get(commitPath(sha) + "/gate?" + query).want(200))
		if !slices.Equal(g.Deliveries, want) {
			t.Errorf("%s: the gate names %q, want %q", query, g.Deliveries, want)
		}
	}

	c := decode[ledger.Commit](b.get(commitPath(sha)).want(200))
	if !slices.Equal(c.Deliveries, want) || c.Delivery != nil {
		t.Errorf("the commit names %q, want %q; without env it has the delivery %+v", c.Deliveries, want, c.Delivery)
	}
	for environment, has := range map[string]bool{"prod": true, "test": true, "staging": true} {
		c := decode[ledger.Commit](b.get(commitPath(sha) + "?env=" + environment).want(200))
		if (c.Delivery != nil) != has || has && (c.Delivery.Environment != environment || c.Delivery.Uncovered != 1) {
			t.Errorf("to %s, the delivery is %+v", environment, c.Delivery)
		}
	}
	b.get(commitPath(sha)+"?env=a%20b").wantFields(400, ledger.CodeInvalidParameter, "env")
}

// Whatever is missing, the answer of a gate has a maximum size.
func TestGateIsSmall(t *testing.T) {
	c := ledger.Commit{}
	for i := range ledger.MaxDeliveries {
		c.Deliveries = append(c.Deliveries, strings.Repeat("e", 118)+fmt.Sprint(i))
	}
	for i := range 200 {
		c.Requirements = append(c.Requirements, ledger.RequirementStatus{State: ledger.Attested, Applies: true,
			Reason: fmt.Sprint(i, strings.Repeat(`"\`+"\x01", 1000))})
	}
	a := ledger.Artifact{State: new(ledger.Draft), Standing: new(ledger.Draft)}
	for range ledger.MaxLinks {
		a.Links = append(a.Links, ledger.ArtifactLink{Repo: strings.Repeat("r", 100), Commit: commitID(1), Counts: true})
	}
	for name, g := range map[string]ledger.Gate{
		"commit": c.Gate(ledger.Promotable, ""), "artifact": a.Gate(ledger.Promotable),
	} {
		text := must.Get(json.Marshal(g))(t)
		if size := len(text); size > ledger.MaxGate || g.Reasons == nil || len(g.Reasons)+g.More < ledger.MaxLinks {
			t.Errorf("%s: %d bytes, %d reasons and %d more", name, size, len(g.Reasons), g.More)
		}
	}
}
