package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// Texts that try to inject HTML. If a page does not escape them, they create
// elements of the class planted and open dialogs.
const (
	planted  = `<img class=planted src=x onerror=alert(1)><script class=planted>alert(2)</script>`
	quotes   = `"'></title></textarea></pre></script>` + "`${alert(3)}`" + `{{.}}&lt;b&gt;` + planted
	reversed = "\u202egnp.tset\u2066" + rightToLeft + "\U0001f3f4\u200d\u2620\ufe0f"

	// rightToLeft has no invisible characters, which names of signers may not have.
	rightToLeft = " שלום e\u0301\u0301\u0301\u0301\u0301"
)

// hostileBranch is as hostile as git allows a branch name to be.
var hostileBranch = `"'<img/class=planted/src=x/onerror=alert(4)>` + "\u202eא🏴" + strings.Repeat("w", 150)

// pushHostile adds commits and evidence with hostile text in every field that
// takes text.
func (s *stage) pushHostile() {
	s.shown = hostileBranch
	author := ledger.Author{Name: `Eve <script class=planted>alert(5)</script>` + reversed,
		Email: strings.Repeat("e", 200) + `"><b class=planted>@x`}
	dn := `cn=\"\>\<img class\=planted src\=x onerror\=alert(6)\>` + rightToLeft + `,ou=` + strings.Repeat("u", 200) +
		`,o=acme`
	s.trust(dn)
	name := must.Get(identity.ParseDN(dn))(s.t)

	path := `payments/"><img class=planted src=x onerror=alert(7)>` + reversed + strings.Repeat("p", 300) + ".go"
	other := ledger.Author{Name: quotes, Email: "other@x"} // the radar folds the pairs of one author
	s.push("api", 3*time.Hour, ledger.Registration{Branch: "victim", Message: quotes, Author: other,
		Changes: []radar.Change{edited(path, 40, 9, 9)}})
	s.push("api", 2*time.Hour, ledger.Registration{
		Branch: hostileBranch, Author: author, Changes: []radar.Change{edited(path, 42, 9, 12)},
		Message: quotes + reversed + strings.Repeat("W", 10_000) + "\n\n" + strings.Repeat("n", 10_000) + "\n" + quotes,
	}, act{time.Minute, name.CN, "test:go", ledger.Fail, time.Second})
	s.pending = append(s.pending, step{time.Now().Add(-time.Hour), func() {
		s.post("api", name.CN, s.hostileStatement())
		s.setHostilePolicy()
	}})
}

// hostileStatement returns a statement of an unknown predicate type.
func (s *stage) hostileStatement() []byte {
	text, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1",
		"subject": []any{map[string]any{"name": quotes, "digest": map[string]string{"gitCommit": commitOf(s.shown)}},
			map[string]any{"name": reversed + quotes}}, // shows as the slot
		// a URI has no spaces
		"predicateType": "https://evil.example/" + strings.ReplaceAll(quotes, " ", "/") + strings.Repeat("t", 200),
		"predicate":     map[string]string{quotes: reversed + quotes, "long": strings.Repeat("L", 10_000)},
	})
	must.OK(s.t, err)
	return text
}

// setHostilePolicy adds requirements whose predicates are hostile.
func (s *stage) setHostilePolicy() {
	p, etag, err := s.api.Policy(s.t.Context(), "acme", "api")
	must.OK(s.t, err)
	for _, predicate := range []string{quotes, reversed, strings.Repeat("q", 500)} {
		p.Requirements = append(p.Requirements, policy.Requirement{State: ledger.Promotable, Predicate: predicate,
			Threshold: 1, Accept: []ledger.Status{ledger.Pass}})
	}
	text, err := json.Marshal(p.Contract)
	must.OK(s.t, err)
	_, err = s.api.SetPolicy(s.t.Context(), "acme", "api", jsontext.Value(text), etag)
	must.OK(s.t, err)
}

// Text from people and receivers stays text: it creates no elements, runs no
// scripts, and does not make a page wider than a narrow window.
func TestWebHostileTextStaysText(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	s := newStage(t, (*stage).pushHostile)
	s.addWebhooks(quotes+reversed, quotes+reversed+strings.Repeat("A", 10_000))
	newTour(t, s).each(t, func(v *visitor, p webPage) {
		if n := evaluate[int](
			v, `document.querySelectorAll('.planted, img, iframe, object, [onerror], script:not([src])').length`); n > 0 {
			v.t.Errorf("%d elements were created from text", n)
		}
		v.window(narrow, "light")
		if n := v.overflow(); n > 0 {
			v.t.Errorf("the page is %d px wider than the narrow window", n)
		}
		if text := hostileOn[p.name]; text != "" && !strings.Contains(v.read(), text) {
			v.t.Errorf("the page does not show %q: %s", text, v.read())
		}
	})
}

// hostileOn maps a page to a text that it must show, which proves that the test
// reaches the page.
var hostileOn = map[string]string{
	"org":         planted[:20],
	"repo-list":   planted[:20],
	"commit":      planted,
	"attestation": planted,
	"policy":      planted,
	"radar":       `<img class=planted src=x onerror=alert(7)>`,
	"identities":  `<img class=planted src=x onerror=alert(6)>`,
	"webhook":     planted,
	"delivery":    planted,
}
