package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A stage is where the demo plays: what was set up, and where it is told.
type stage struct {
	terminal.Painter
	out io.Writer
	url string
	org string
	git *history

	witnesses *witnesses
	happened  int // events so far

	writer  *client.Client             // with a token that may write
	reader  string                     // a token that may read
	admin   string                     // a token that may do everything
	signers map[string]*signing.Signer // by plain name
	dns     map[string]string
}

// A role is one who signs in the demo.
type role struct{ name, unit string }

func roles() []role {
	return []role{{"ci", "build"}, {"rita", "review"}, {"pilot", "platform"}}
}

// An act is one attestation of the demo.
type act struct {
	signer    string
	predicate string
	status    ledger.Status
	took      time.Duration
}

// script returns what is attested of the newest commit, of the one before it,
// and so on: one for each state, from the highest.
func script() [maxCommits][]act {
	tested := act{"ci", "test:go", ledger.Pass, 8421 * time.Millisecond}
	reviewed := act{"rita", "review:code", ledger.Pass, 0}
	return [maxCommits][]act{
		{{"ci", "build:docker", ledger.Pass, 31500 * time.Millisecond}, tested, reviewed,
			{"pilot", "deploy:prod", ledger.Pass, 12 * time.Second}},
		{tested, reviewed},
		{tested},
		{{"ci", "test:go", ledger.Fail, 3077 * time.Millisecond}},
		nil,
	}
}

// play sets the stage and plays the commits, the oldest first.
func (s *stage) play(ctx context.Context, running *service.Instance) error {
	s.heading("A server on a throw-away database")
	s.say("  %s", s.url)
	if err := s.setUp(ctx, running); err != nil {
		return err
	}
	acts := script()
	for i := len(s.git.commits) - 1; i >= 0; i-- {
		if err := s.playCommit(ctx, s.git.commits[i], acts[i]); err != nil {
			return err
		}
	}
	if err := s.showStates(ctx); err != nil {
		return err
	}
	return s.showCounts(ctx)
}

// setUp makes the org as the host of the machine, and all else with a token,
// as anybody would.
func (s *stage) setUp(ctx context.Context, running *service.Instance) error {
	host, err := running.Host()
	if err != nil {
		return err
	}
	if _, err := host.CreateOrg(ctx, ledger.NewOrg{Name: s.org}); err != nil {
		return err
	}
	adminToken, err := host.CreateToken(ctx, s.org, ledger.NewToken{Name: "demo admin", Scope: ledger.Admin})
	if err != nil {
		return err
	}
	s.admin = adminToken.Secret
	admin, err := s.client(s.admin)
	if err != nil {
		return err
	}
	if _, err := admin.CreateRepo(ctx, s.org, ledger.NewRepo{Name: s.git.name}); err != nil {
		return err
	}
	origin := "the git repository you stand in"
	if s.git.made {
		origin = "a small history that the demo made"
	}
	s.say("  org %s, repo %s/%s: %s", s.org, s.org, s.git.name, origin)
	if err := s.addSigners(ctx, admin); err != nil {
		return err
	}
	if err := s.addTokens(ctx, admin); err != nil {
		return err
	}
	return s.addWitnesses(ctx, admin)
}

// addWitnesses has the events shown as they come: on the live stream, and to a
// webhook.
func (s *stage) addWitnesses(ctx context.Context, admin *client.Client) error {
	s.heading("Who hears of it: a reader of the live stream, and a receiver of signed webhooks")
	hook, err := s.witnesses.subscribe(ctx, admin, s.org, s.git.name)
	if err != nil {
		return err
	}
	reader, err := s.client(s.reader)
	if err != nil {
		return err
	}
	s.witnesses.follow(ctx, reader, s.org)
	s.say("  stream   %s", s.faint(s.url+"/v1/orgs/"+s.org+"/events"))
	s.say("  webhook  %s", s.faint(hook.URL+", which checks every signature"))
	return nil
}

func (s *stage) client(token string) (*client.Client, error) {
	return client.New(s.url, client.Options{Token: token, UserAgent: buildinfo.UserAgent()})
}

// addSigners makes a key for each role and has the org trust it.
func (s *stage) addSigners(ctx context.Context, admin *client.Client) error {
	s.heading("Keys, each with a certificate that the org trusts; what they will sign is made up")
	s.signers, s.dns = make(map[string]*signing.Signer), make(map[string]string)
	for _, r := range roles() {
		dn := identity.DN{CN: r.name, OU: r.unit, O: s.org}
		pair, err := signing.NewKeyPair(dn, "", time.Now(), 1)
		if err != nil {
			return err
		}
		_, err = admin.AddIdentity(ctx, s.org, identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(pair.CertPEM())})
		if err != nil {
			return err
		}
		s.signers[r.name] = pair.Signer()
		s.dns[r.name] = dn.String()
		s.say("  %-8s %s", r.name, s.faint(dn.String()))
	}
	return nil
}

func (s *stage) addTokens(ctx context.Context, admin *client.Client) error {
	write, err := admin.CreateToken(ctx, s.org, ledger.NewToken{Name: "demo ci", Scope: ledger.Write})
	if err != nil {
		return err
	}
	if s.writer, err = s.client(write.Secret); err != nil {
		return err
	}
	read, err := admin.CreateToken(ctx, s.org, ledger.NewToken{Name: "demo reader", Scope: ledger.Read})
	s.reader = read.Secret
	return err
}

// playCommit pushes a commit and attests what the script says of it.
func (s *stage) playCommit(ctx context.Context, sha string, acts []act) error {
	local, err := s.git.Repo.ReadCommit(ctx, gitrepo.Query{Rev: sha})
	if err != nil {
		return err
	}
	s.heading("Commit %s %s", terminal.Short(sha),
		s.faint(terminal.Printable(terminal.Clip(terminal.OneLine(local.Message), 50))))
	commit, _, err := s.writer.Register(ctx, s.org, s.git.name, sha, local.Registration)
	if err != nil {
		return err
	}
	s.say("  %-34s %s", "pushed, "+local.Extent(), s.state(commit.State))
	for _, a := range acts {
		if commit, err = s.perform(ctx, commit, a); err != nil {
			return err
		}
	}
	s.showMissing(commit)
	return nil
}

// perform signs and records an attestation, and tells what came of it, as the
// API then has it.
func (s *stage) perform(ctx context.Context, before ledger.Commit, a act) (ledger.Commit, error) {
	now := time.Now()
	statement, err := attestation.NewStatement(s.org+"/"+s.git.name, before.SHA, attestation.ResultPredicate{
		Predicate:   a.predicate,
		Result:      ledger.Result{Status: a.status, DurationMS: a.took.Milliseconds()},
		StartedOn:   ledger.TimeOf(now.Add(-a.took)),
		FinishedOn:  ledger.TimeOf(now),
		Annotations: map[string]string{"made-up-by": "ledgerd demo"},
	})
	if err != nil {
		return before, err
	}
	envelope, err := s.signers[a.signer].Sign(statement)
	if err != nil {
		return before, err
	}
	if _, _, err := s.writer.Record(ctx, s.org, s.git.name, envelope); err != nil {
		return before, err
	}
	after, err := s.writer.Commit(ctx, s.org, s.git.name, before.SHA)
	if err != nil {
		return before, err
	}
	s.say("  %-8s signed %-13s %-4s %s", a.signer, a.predicate, a.status, s.moves(before, after))
	s.happened += 1 + len(after.Transitions) - len(before.Transitions)
	return after, s.showNews(ctx)
}

// showNews tells what the witnesses have heard of the last act.
func (s *stage) showNews(ctx context.Context) error {
	if err := s.witnesses.await(ctx, s.happened); err != nil {
		return err
	}
	streamed, posted := s.witnesses.news()
	verdict := "signature ok"
	if n := len(posted); n != 1 {
		verdict = fmt.Sprintf("%d signatures ok", n)
	}
	s.say("    stream   %s", s.faint(strings.Join(streamed, ", ")))
	s.say("    webhook  %s  %s", s.faint(strings.Join(posted, ", ")), s.Paint(terminal.Green, verdict))
	return nil
}

// showCounts waits until every event of the history has reached the witnesses, and
// prints how many there were.
func (s *stage) showCounts(ctx context.Context) error {
	events, err := client.Collect(s.writer.Events(ctx, s.org, client.EventFilter{}), 0)
	if err != nil {
		return err
	}
	if err := s.witnesses.await(ctx, len(events)); err != nil {
		return err
	}
	streamed, posted, err := s.witnesses.counts()
	if err != nil {
		return err
	}
	s.say("\n  %s on the stream, %d delivered to the webhook, every signature verified",
		terminal.Plural(int64(streamed), "event"), posted)
	return nil
}

// moves tells the transitions of a commit between two looks at it.
func (s *stage) moves(before, after ledger.Commit) string {
	text := s.state(before.State)
	for _, t := range after.Transitions[len(before.Transitions):] {
		text += " -> " + s.state(t.To)
	}
	return text
}

// showMissing tells what gate would: what the next state still needs.
func (s *stage) showMissing(c ledger.Commit) {
	if c.State == ledger.Deployed {
		return
	}
	next := max(c.State+1, ledger.Attested)
	s.say("  gate --state %s: not reached", next)
	for _, r := range c.Requirements {
		if r.Applies && !r.Met && r.State <= next {
			s.say("    %-10s %d of %d  %s", terminal.Printable(r.Predicate), r.Have, r.Need,
				s.faint(terminal.Printable(r.Reason)))
		}
	}
}

func (s *stage) showStates(ctx context.Context) error {
	s.heading("Where they stand")
	commits, err := client.Collect(s.writer.Commits(ctx, s.org, s.git.name, client.CommitFilter{}), maxCommits)
	if err != nil {
		return err
	}
	for _, c := range commits {
		s.say("  %s  %s  %-15s %s", terminal.Short(c.SHA), s.paddedState(c.State), terminal.Plural(c.Attested, "attestation"),
			s.faint(terminal.Printable(terminal.Clip(terminal.OneLine(c.Message), 50))))
	}
	return nil
}

// showDoors tells where to look on: in the web interface, and by curl.
func (s *stage) showDoors() {
	s.heading("Look at it in a browser")
	s.say("  %s", s.url)
	s.say("  sign in with the token %s", s.admin)
	s.heading("Or by the HTTP API")
	s.say("  TOKEN=%s", s.reader)
	base := s.url + "/v1/orgs/" + s.org
	newest := s.git.commits[0]
	for _, path := range []string{
		"/repos",
		"/repos/" + s.git.name + "/commits/" + terminal.Short(newest),
		"/repos/" + s.git.name + "/attestations?predicate=test:*",
		"/policies/" + s.git.name,
		"/events",
	} {
		s.say(`  curl -H "Authorization: Bearer $TOKEN" '%s%s'`, base, path)
	}
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

func (s *stage) heading(format string, args ...any) {
	s.say("\n%s", s.Paint("1", fmt.Sprintf(format, args...)))
}

func (s *stage) faint(text string) string { return s.Paint("2", text) }

func (s *stage) state(state ledger.State) string {
	return s.Paint(terminal.StateColour(state), state.String())
}

func (s *stage) paddedState(state ledger.State) string {
	return s.Paint(terminal.StateColour(state), fmt.Sprintf("%-10s", state))
}
