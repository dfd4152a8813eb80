package ledger

import "testing"

// An artifact is what the least of its commits is: by their states, and by their standings.
func TestAnArtifactHasTheLeastStateAndStanding(t *testing.T) {
	link := func(state, standing State) ArtifactLink {
		return ArtifactLink{State: state, Standing: standing, Counts: true}
	}
	others := make([]ArtifactLink, MaxLinks)
	for i := range others {
		others[i] = link(Deployed, Promotable)
	}
	ignored := link(Draft, Draft)
	ignored.Counts = false

	for _, test := range []struct {
		name            string
		links           []ArtifactLink
		state, standing State
	}{
		{"one commit", []ArtifactLink{link(Attested, Attested)}, Attested, Attested},
		{"a deployed one", []ArtifactLink{link(Deployed, Promotable)}, Deployed, Promotable},
		{"two that decide", []ArtifactLink{link(Promotable, Promotable), link(Deployed, Draft)}, Promotable, Draft},
		{"one that does not count", []ArtifactLink{ignored, link(Deployed, Attested)}, Deployed, Attested},
		{"beyond the list", append(others, link(Promotable, Promotable), link(Deployed, Draft)), Promotable, Draft},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := NewArtifact("sha256:00", test.links, "")
			if *a.State != test.state || *a.Standing != test.standing {
				t.Errorf("%s, standing %s, want %s, standing %s", *a.State, *a.Standing, test.state, test.standing)
			}
			for s := Draft; s <= Deployed; s++ {
				if want := s <= test.standing || s == Deployed && test.state == Deployed; a.Reached(s) != want {
					t.Errorf("reached %s: %t, want %t", s, a.Reached(s), want)
				}
			}
			listed := NewArtifact("sha256:00", a.Links, "")
			if *listed.State != test.state || *listed.Standing != test.standing || len(a.Links) > MaxLinks {
				t.Errorf("the %d commits that are listed give %s, standing %s", len(a.Links), *listed.State, *listed.Standing)
			}
		})
	}
}
