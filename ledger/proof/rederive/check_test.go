package rederive

import (
	"cmp"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A checkTest is a log of one commit, and what Check says of it.
type checkTest struct {
	contracts []string
	log       func(h *history)
	// after is how long after the last event the state is derived; ten minutes by default.
	after time.Duration
	want  string // a part of why, or of the error if it begins with "!"
}

func (test checkTest) run(t *testing.T) {
	h := newHistory(t, test.contracts...)
	test.log(h)
	_, why, err := h.Check(theCommit, "main", h.now.Add(cmp.Or(test.after, 10*time.Minute)))
	wantCheck(t, why, err, test.want)
}

// wantCheck compares what Check says with what a checkTest wants.
func wantCheck(t *testing.T, why string, err error, want string) {
	t.Helper()
	got := why
	if err != nil {
		got = "!" + err.Error()
	}
	isFailure := strings.HasPrefix(want, "!")
	isWanted := strings.Contains(got, strings.TrimPrefix(want, "!")) && (want != sure || got == "")
	if (err != nil) != isFailure || !isWanted {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]checkTest{
		"nothing":     {log: func(h *history) { h.register(byAnn()) }},
		"every state": {log: (*history).deploy},
		"a state too high": {log: func(h *history) {
			h.test(promotable)
		}, want: "!" + wrong},
		"a state too low": {log: func(h *history) {
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.enter(validating)
		}, want: "!" + wrong},
		"a state for no reason": {log: func(h *history) {
			h.register(byAnn())
			h.enter(validating)
		}, want: "!" + wrong},
		"not known": {log: func(h *history) { h.pass("ci", "test:go") }, want: "not known"},
		"another commit's tests": {log: func(h *history) {
			h.register(byAnn())
			h.attest("beef", "ci", "test:go", ledger.Pass, nil)
		}},

		"a review by the author": {log: func(h *history) {
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.pass("ann", "review:code")
			h.enter(attested)
		}},
		"a review by the author's other name, with the same key": {log: func(h *history) {
			h.trust("rev", "ann", "")
			h.review()
		}, want: "!" + wrong},
		"a review by somebody with the author's e-mail address": {log: func(h *history) {
			h.trust("rev", "rev", "Ann@acme.example")
			h.review()
		}, want: "!" + wrong},
		"tests and a review with one key, in another repo": {log: func(h *history) {
			sum := keyOf("ci")
			must.OK(h.t, h.Signed(ledger.AttestationEvent{Identity: dn("rev"), Key: hex.EncodeToString(sum[:])}))
			h.review()
		}, want: "!" + wrong},
		"a review by who has signed the commit": {log: func(h *history) {
			c, sum := byAnn(), keyOf("rev")
			c.SigningKeys = []string{hex.EncodeToString(sum[:])}
			h.register(c)
			h.pass("ci", "test:go")
			h.pass("rev", "review:code")
			h.enter(promotable)
		}, want: "!" + wrong},

		"tests and a review by two signers with a common name": {log: func(h *history) {
			h.trust("ci/y", "ci/y", "")
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.pass("ci/y", "review:code")
			h.enter(promotable)
		}, want: "!" + wrong},
		"tests and a review by two signers with a common name, who are distinct": {log: func(h *history) {
			h.trust("ci/y", "ci/y", "")
			h.setDistinct("ci/y", true)
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.pass("ci/y", "review:code")
			h.enter(promotable)
		}},
		"tests and a review by two signers with a common name, who are no longer distinct": {log: func(h *history) {
			h.trust("ci/y", "ci/y", "")
			h.setDistinct("ci/y", true)
			h.setDistinct("ci/y", false)
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.pass("ci/y", "review:code")
			h.enter(promotable)
		}, want: "!" + wrong},
		"tests and a review by two signers with an address of a third": {log: func(h *history) {
			h.trust("eve", "eve", "ci")
			h.trust("eve/y", "eve/y", "rev")
			h.review()
		}, want: "!" + wrong},
		"a failure of a signer, and a pass of another with the name": {log: func(h *history) {
			h.trust("ci/y", "ci/y", "")
			h.register(byAnn())
			h.pass("ci/y", "test:go")
			h.enter(attested)
			h.attest(theCommit, "ci", "test:go", ledger.Fail, nil)
			h.pass("ci/y", "test:go")
		}, want: "!" + wrong},
		"tests and a review, perhaps with one address, in certificates of other repos": {log: func(h *history) {
			must.OK(h.t, h.Signed(ledger.AttestationEvent{Identity: dn("new")}))
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.pass("rev", "review:code")
			h.enter(attested)
		}, want: "have signed in other repos"},
		"a distrusted reviewer": {log: func(h *history) {
			h.review()
			h.distrust("rev")
		}, want: "!" + wrong},
		"a reviewer who was distrusted just now": {log: func(h *history) {
			h.review()
			h.distrust("rev")
		}, after: 30 * time.Second, want: later},
		"a reviewer who is distrusted since the review": {log: func(h *history) {
			h.review()
			h.distrust("rev", h.now.Add(-time.Second))
		}, want: "!" + wrong},
		"a reviewer who is distrusted since after the review": {log: func(h *history) {
			h.review()
			h.distrust("rev", h.now)
		}},
		"a review with an address of the author in another certificate": {log: func(h *history) {
			h.attest("beef", "rev", "lint:go", ledger.Pass, func(a *attestation.Attestation) {
				a.Signer.Emails = []string{"ann@acme.example"}
			})
			h.review()
		}, want: "!" + wrong},
		"a review under a name that has used the author's key": {log: func(h *history) {
			h.attest("beef", "rev", "lint:go", ledger.Pass, func(a *attestation.Attestation) { a.Signer.Key = keyOf("ann") })
			h.review()
		}, want: "!" + wrong},
		"signers in events without keys, of an earlier release": {log: func(h *history) {
			for _, name := range []string{"ci", "rev", "ops", "ann"} {
				must.OK(h.t, h.Signed(ledger.AttestationEvent{Identity: dn(name)}))
			}
			h.deploy()
		}},
		"a root": {log: func(h *history) {
			must.OK(h.t, h.Identity(ledger.IdentityEvent{IdentityID: "idn_root", Kind: "root"}))
			h.register(byAnn())
		}},
		"a signer who is not in the log": {log: func(h *history) {
			h.register(byAnn())
			h.attest(theCommit, "ci", "test:go", ledger.Pass, func(a *attestation.Attestation) {
				a.Signer.Identity, a.Signer.Key = "idn_eve", keyOf("eve")
			})
			h.enter(attested)
		}, want: "does not have an identity"},
		"a pinned key, with another ID": {log: func(h *history) {
			h.register(byAnn())
			h.attest(theCommit, "ci", "test:go", ledger.Pass, func(a *attestation.Attestation) {
				a.Signer.Identity = "key 1 of the file"
			})
			h.enter(attested)
		}},

		"a failure": {log: func(h *history) {
			h.test(attested)
			h.attest(theCommit, "ci", "test:go", ledger.Fail, nil)
		}, want: "!" + wrong},
		"an exception": {
			contracts: []string{`{"requirements":[{"name":"tests","state":"ATTESTED","predicate":"test:*"}],
				"exceptions":{"signers":["cn=rev,o=acme"],"max_duration":"48h"}}`},
			log: func(h *history) {
				h.register(byAnn())
				h.attest(theCommit, "rev", "exception:tests", ledger.Recorded, func(a *attestation.Attestation) {
					a.PredicateType = attestation.ExceptionPredicateType
					a.Exception = &attestation.Exception{Requirement: "tests", Until: h.now.Add(24 * time.Hour)}
				})
				h.enter(promotable)
			},
		},
		"an expression": {
			contracts: []string{`{"requirements":[{"state":"ATTESTED","predicate":"test:*","where":"predicate.a == 2"}]}`},
			log:       func(h *history) { h.register(byAnn()); h.pass("ci", "test:go"); h.enter(promotable) },
			want:      "!" + wrong,
		},

		"an expression that is true": {
			contracts: []string{`{"requirements":[{"state":"ATTESTED","predicate":"test:*","where":"predicate.a == 1"}]}`},
			log:       func(h *history) { h.register(byAnn()); h.pass("ci", "test:go"); h.enter(promotable) },
		},
		"a review that a passkey has confirmed": {
			contracts: []string{confirming},
			log: func(h *history) {
				h.register(byAnn())
				h.attest(theCommit, "rev", "review:code", ledger.Pass, func(a *attestation.Attestation) {
					a.Assertion = []byte("{}")
				})
				h.enter(promotable)
			},
		},
		"a review that no passkey has confirmed": {
			contracts: []string{confirming},
			log: func(h *history) {
				h.register(byAnn())
				h.pass("rev", "review:code")
				h.enter(promotable)
			},
			want: "!" + wrong,
		},
		"an enrolment of a passkey just now": {
			contracts: []string{confirming},
			log: func(h *history) {
				h.register(byAnn())
				h.pass("rev", "review:code")
				h.enter(promotable)
				must.OK(h.t, h.Identity(ledger.IdentityEvent{IdentityID: "pas_1", Kind: ledger.KindPasskey, Timestamp: h.tick()}))
			},
			after: time.Second,
			want:  "!" + wrong,
		},
		"changed paths": {
			contracts: []string{`{"requirements":[{"state":"ATTESTED","predicate":"lint:*","paths":["*.go"]}]}`},
			log: func(h *history) {
				c := byAnn()
				c.Changes = []radar.Change{{Path: "a.go", Status: "M"}}
				h.register(c)
				h.pass("ci", "test:go")
				h.enter(validating)
			},
		},

		"a contract that was replaced": {contracts: []string{tests, strict}, log: func(h *history) {
			h.test(promotable)
			h.apply(2)
		}, want: "!" + wrong},
		"a contract that was replaced just now": {contracts: []string{tests, strict}, log: func(h *history) {
			h.test(promotable)
			h.apply(2)
		}, after: 30 * time.Second, want: later},
		"a contract that was not read": {contracts: []string{tests}, log: func(h *history) {
			h.register(byAnn())
			must.OK(h.t, h.Policy(ledger.PolicyEvent{Version: 2, Timestamp: h.tick()}))
		}, want: unknownContract},
		"evidence that has expired": {contracts: []string{expiring}, log: func(h *history) {
			h.test(promotable)
		}, after: 2 * time.Hour, want: "!" + wrong},
		"evidence that has expired just now": {contracts: []string{expiring}, log: func(h *history) {
			h.test(promotable)
		}, after: time.Hour + 30*time.Second, want: later},

		"tests of another commit with the same tree": {log: func(h *history) {
			h.register(withTree("beef"))
			h.attest("beef", "ci", "test:go", ledger.Pass, nil)
			h.register(withTree(theCommit))
			h.enter(attested)
		}},
		"tests of another commit with the same tree, which are no older than a month when the commit comes": {
			log: func(h *history) {
				h.register(withTree("beef"))
				h.attest("beef", "ci", "test:go", ledger.Pass, nil)
				h.now = h.now.Add(29 * 24 * time.Hour)
				h.register(withTree(theCommit))
				h.enter(attested)
			}, after: 365 * 24 * time.Hour},
		"tests of another commit with the same tree, which are older than a month when the commit comes": {
			log: func(h *history) {
				h.register(withTree("beef"))
				h.attest("beef", "ci", "test:go", ledger.Pass, nil)
				h.now = h.now.Add(31 * 24 * time.Hour)
				h.register(withTree(theCommit))
				h.enter(attested)
			}, want: "!" + wrong},
		"a failure of another commit with the same tree": {log: func(h *history) {
			h.register(withTree("beef"))
			h.register(withTree(theCommit))
			h.pass("ci", "test:go")
			h.enter(attested)
			h.attest("beef", "ci", "test:go", ledger.Fail, nil)
		}, want: "!" + wrong},
		"a failure of another commit with the same tree, just now": {log: func(h *history) {
			h.register(withTree("beef"))
			h.register(withTree(theCommit))
			h.pass("ci", "test:go")
			h.enter(attested)
			h.attest("beef", "ci", "test:go", ledger.Fail, nil)
		}, after: 30 * time.Second, want: later},
		"distrusted tests of another commit with the same tree": {log: func(h *history) {
			h.register(withTree("beef"))
			h.attest("beef", "rev", "test:go", ledger.Pass, nil)
			h.register(withTree(theCommit))
			h.enter(attested)
			h.distrust("rev")
		}, want: "!" + wrong},
		"the same tree under a contract without carry": {contracts: []string{tests}, log: func(h *history) {
			h.register(withTree("beef"))
			h.attest("beef", "ci", "test:go", ledger.Pass, nil)
			h.register(withTree(theCommit))
		}},
		"the same tree as a commit that is not known": {log: func(h *history) {
			h.Commit(ledger.CommitEvent{Commit: "beef", Tree: "7ee", Facts: "sha256:00", Timestamp: h.tick()})
			h.register(withTree(theCommit))
		}, want: "does not have what is known of beef"},
		"a review that carries, by who wrote the other commit": {log: func(h *history) {
			other := withTree("beef")
			other.Author = ledger.Author{Name: "rev"}
			h.register(other)
			h.attest("beef", "rev", "review:code", ledger.Pass, nil)
			h.register(withTree(theCommit))
			h.pass("ci", "test:go")
			h.enter(promotable)
		}, want: "!" + wrong},
		"a review that carries, by who has signed the other commit": {log: func(h *history) {
			other, sum := withTree("beef"), keyOf("rev")
			other.SigningKeys = []string{hex.EncodeToString(sum[:])}
			h.register(other)
			h.attest("beef", "rev", "review:code", ledger.Pass, nil)
			h.register(withTree(theCommit))
			h.pass("ci", "test:go")
			h.enter(promotable)
		}, want: "!" + wrong},
		"of what one signer says of a tree, the newest carries": {log: func(h *history) {
			finished := func(at ledger.Time) func(*attestation.Attestation) {
				return func(a *attestation.Attestation) { a.FinishedAt = at }
			}
			h.register(withTree("beef"))
			h.register(withTree("dead"))
			h.attest("dead", "ci", "test:go", ledger.Fail, finished(start+2))
			h.attest("beef", "ci", "test:go", ledger.Pass, finished(start+1))
			h.register(withTree(theCommit))
			h.enter(attested)
		}},
		"a merge": {contracts: []string{merging}, log: func(h *history) {
			h.register(byAnn())
			h.attest(theCommit, "ci", "merge:clean", ledger.Pass, func(a *attestation.Attestation) {
				a.Merge = new(attestation.Merge)
			})
			h.enter(attested)
		}, want: "it is a merge"},
		"a merge by who may not carry": {contracts: []string{merging}, log: func(h *history) {
			h.register(byAnn())
			h.attest(theCommit, "rev", "merge:clean", ledger.Pass, func(a *attestation.Attestation) {
				a.Merge = new(attestation.Merge)
			})
			h.enter(attested)
		}, want: "!" + wrong},

		"a review of changes, and one of the commit": {log: func(h *history) {
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.attest(theCommit, "rev", "review:code", ledger.Pass, since("ba5e"))
			h.pass("ops", "review:code")
			h.enter(promotable)
		}},
		"a review of changes that is too few": {log: func(h *history) {
			h.register(byAnn())
			h.attest(theCommit, "rev", "review:code", ledger.Pass, since("ba5e"))
			h.enter(promotable)
		}, want: "!" + wrong},
		"a deployment after a review of changes that is too few": {log: func(h *history) {
			h.register(byAnn())
			h.attest(theCommit, "rev", "review:code", ledger.Pass, since("ba5e"))
			h.enter(promotable)
			h.pass("ops", "deploy:prod")
			h.enter(deployed)
		}, want: "!it was DEPLOYED"},
		"objects of other commits": {log: func(h *history) {
			h.Commit(ledger.CommitEvent{Objects: []string{theCommit, "beef"}})
			h.test(attested)
		}},

		"PROMOTABLE if no overlap blocks": {contracts: []string{blocking}, log: func(h *history) {
			h.test(promotable)
		}, want: "blocks overlaps"},
		"ATTESTED if an overlap blocks": {contracts: []string{blocking}, log: func(h *history) {
			h.test(attested)
		}, want: "without overlaps"},
		"PROMOTABLE without evidence, whatever overlaps": {contracts: []string{blocking}, log: func(h *history) {
			h.register(byAnn())
			h.enter(promotable)
		}, want: "!" + wrong},
	} {
		t.Run(name, test.run)
	}
}
