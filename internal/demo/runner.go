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

// A runner runs the demo against a server and prints what happens.
type runner struct {
	terminal.Painter
	out io.Writer
	url string
	org string
	git *history

	observers *observers
	events    int // how many there are so far

	writer  *client.Client             // with a write token
	reader  string                     // a read token
	admin   string                     // an admin token
	signers map[string]*signing.Signer // by plain name
}

// An actor is a signer of the demo.
type actor struct{ name, unit string }

// actors returns the signers. The contract of a new repo needs two: the reviewer can neither
// be an author of the commits, nor have signed the tests or the deployment.
func actors(reviewer string) []actor {
	return []actor{{"ci", "build"}, {reviewer, "review"}, {"pilot", "platform"}}
}

// A step is one attestation of the demo.
type step struct {
	signer    string
	predicate string
	status    ledger.Status
	duration  time.Duration
}

// script returns the attestations of each commit, newest commit first. They take
// the commits to all states, from DEPLOYED down to DRAFT.
func script(reviewer string) [maxCommits][]step {
	tested := step{"ci", "test:go", ledger.Pass, 8421 * time.Millisecond}
	reviewed := step{reviewer, "review:code", ledger.Pass, 0}
	return [maxCommits][]step{
		{{"ci", "build:docker", ledger.Pass, 31500 * time.Millisecond}, tested, reviewed,
			{"pilot", "deploy:prod", ledger.Pass, 12 * time.Second}},
		{tested, reviewed},
		{tested},
		{{"ci", "test:go", ledger.Fail, 3077 * time.Millisecond}},
		nil,
	}
}

// run sets up the ledger and runs the steps of all commits, oldest first.
func (r *runner) run(ctx context.Context, running *service.Instance) error {
	r.heading("A server on a temporary database")
	r.print("  %s", r.url)
	if err := r.setUp(ctx, running); err != nil {
		return err
	}
	steps := script(r.reviewer())
	for i := len(r.git.commits) - 1; i >= 0; i-- {
		if err := r.runCommit(ctx, r.git.commits[i], steps[i]); err != nil {
			return err
		}
	}
	if err := r.showStates(ctx); err != nil {
		return err
	}
	return r.showCounts(ctx)
}

// setUp creates the org with host rights, and everything else with a token, as users
// do.
func (r *runner) setUp(ctx context.Context, running *service.Instance) error {
	host, err := running.Host()
	if err != nil {
		return err
	}
	if _, err := host.CreateOrg(ctx, ledger.NewOrg{Name: r.org}); err != nil {
		return err
	}

	adminToken, err := host.CreateToken(ctx, r.org, ledger.NewToken{Name: "demo admin", Scope: ledger.Admin})
	if err != nil {
		return err
	}
	r.admin = adminToken.Secret
	admin, err := r.client(r.admin)
	if err != nil {
		return err
	}
	if _, err := admin.CreateRepo(ctx, r.org, ledger.NewRepo{Name: r.git.name}); err != nil {
		return err
	}
	origin := "the current git repository"
	if r.git.sample {
		origin = "a sample git repository"
	}
	r.print("  org %s, repo %s/%s: %s", r.org, r.org, r.git.name, origin)

	if err := r.addSigners(ctx, admin); err != nil {
		return err
	}
	if err := r.addTokens(ctx, admin); err != nil {
		return err
	}
	return r.addObservers(ctx, admin)
}

// addObservers subscribes to the events, on the live stream and with a webhook.
func (r *runner) addObservers(ctx context.Context, admin *client.Client) error {
	r.heading("Observers: a reader of the live stream, and a receiver of signed webhooks")
	hook, err := r.observers.subscribe(ctx, admin, r.org, r.git.name)
	if err != nil {
		return err
	}
	reader, err := r.client(r.reader)
	if err != nil {
		return err
	}
	r.observers.follow(ctx, reader, r.org)
	r.print("  stream   %s", r.faint(r.url+"/v1/orgs/"+r.org+"/events"))
	r.print("  webhook  %s", r.faint(hook.URL+", verifies every signature"))
	return nil
}

// reviewer returns the name of the signer of reviews, who wrote none of the commits.
func (r *runner) reviewer() string { return r.git.stranger("rita") }

func (r *runner) client(token string) (*client.Client, error) {
	return client.New(r.url, client.Options{Token: token, UserAgent: buildinfo.UserAgent()})
}

// addSigners creates a key for each actor and adds it to the org's keyring.
func (r *runner) addSigners(ctx context.Context, admin *client.Client) error {
	r.heading("Keys, each with a certificate that the org trusts; the results they sign are made up")
	r.signers = make(map[string]*signing.Signer)
	for _, a := range actors(r.reviewer()) {
		dn := identity.DN{CN: a.name, OU: a.unit, O: r.org}
		pair, err := signing.NewKeyPair(dn, "", time.Now(), 1)
		if err != nil {
			return err
		}
		_, err = admin.AddIdentity(ctx, r.org, identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(pair.CertPEM())})
		if err != nil {
			return err
		}
		r.signers[a.name] = pair.Signer()
		r.print("  %-8s %s", a.name, r.faint(dn.String()))
	}
	return nil
}

func (r *runner) addTokens(ctx context.Context, admin *client.Client) error {
	write, err := admin.CreateToken(ctx, r.org, ledger.NewToken{Name: "demo ci", Scope: ledger.Write})
	if err != nil {
		return err
	}
	if r.writer, err = r.client(write.Secret); err != nil {
		return err
	}
	read, err := admin.CreateToken(ctx, r.org, ledger.NewToken{Name: "demo reader", Scope: ledger.Read})
	r.reader = read.Secret
	return err
}

// runCommit pushes a commit and records its attestations.
func (r *runner) runCommit(ctx context.Context, sha string, steps []step) error {
	local, err := r.git.Repo.ReadCommit(ctx, gitrepo.Query{Rev: sha})
	if err != nil {
		return err
	}
	r.heading("Commit %s %s", terminal.Short(sha),
		r.faint(terminal.Printable(terminal.Clip(terminal.OneLine(local.Message), 50))))
	commit, _, err := r.writer.Register(ctx, r.org, r.git.name, sha, local.Registration)
	if err != nil {
		return err
	}
	r.print("  %-34s %s", "pushed, "+local.Extent(), r.state(commit.State))
	for _, s := range steps {
		if commit, err = r.attest(ctx, commit, s); err != nil {
			return err
		}
	}
	r.showMissing(commit)
	return nil
}

// attest signs and records an attestation, prints it and the commit's transitions,
// and returns the commit as the API then shows it.
func (r *runner) attest(ctx context.Context, before ledger.Commit, s step) (ledger.Commit, error) {
	now := time.Now()
	statement, err := attestation.NewStatement(r.org+"/"+r.git.name, before.SHA, attestation.ResultPredicate{
		Predicate:   s.predicate,
		Result:      ledger.Result{Status: s.status, DurationMS: s.duration.Milliseconds()},
		Repo:        r.org + "/" + r.git.name,
		StartedOn:   ledger.TimeOf(now.Add(-s.duration)),
		FinishedOn:  ledger.TimeOf(now),
		Annotations: map[string]string{"made-up-by": "ledgerd demo"},
	})
	if err != nil {
		return before, err
	}
	envelope, err := r.signers[s.signer].Sign(statement)
	if err != nil {
		return before, err
	}
	if _, _, err := r.writer.Record(ctx, r.org, r.git.name, envelope); err != nil {
		return before, err
	}

	after, err := r.writer.Commit(ctx, r.org, r.git.name, before.SHA)
	if err != nil {
		return before, err
	}
	r.print("  %-8s signed %-13s %-4s %s", s.signer, s.predicate, s.status, r.transitions(before, after))
	r.events += 1 + len(after.Transitions) - len(before.Transitions)
	return after, r.showReceived(ctx)
}

// showReceived waits until the observers have received the events of the last step,
// and prints them.
func (r *runner) showReceived(ctx context.Context) error {
	if err := r.observers.await(ctx, r.events); err != nil {
		return err
	}
	streamed, posted := r.observers.take()
	verdict := "signature ok"
	if n := len(posted); n != 1 {
		verdict = fmt.Sprintf("%d signatures ok", n)
	}
	r.print("    stream   %s", r.faint(strings.Join(streamed, ", ")))
	r.print("    webhook  %s  %s", r.faint(strings.Join(posted, ", ")), r.Paint(terminal.Green, verdict))
	return nil
}

// showCounts waits until the observers have received every event of the org's
// history, and prints how many there were.
func (r *runner) showCounts(ctx context.Context) error {
	events, err := client.Collect(r.writer.Events(ctx, r.org, client.EventFilter{}), 0)
	if err != nil {
		return err
	}
	if err := r.observers.await(ctx, len(events)); err != nil {
		return err
	}
	streamed, posted, err := r.observers.counts()
	if err != nil {
		return err
	}
	r.print("\n  %s on the stream, %d delivered to the webhook, every signature verified",
		terminal.Plural(int64(streamed), "event"), posted)
	return nil
}

// transitions formats the states of a commit from before to after.
func (r *runner) transitions(before, after ledger.Commit) string {
	text := r.state(before.State)
	for _, t := range after.Transitions[len(before.Transitions):] {
		text += " -> " + r.state(t.To)
	}
	return text
}

// showMissing prints the requirements that the next state still needs, like gate.
func (r *runner) showMissing(c ledger.Commit) {
	if c.State == ledger.Deployed {
		return
	}
	next := max(c.State+1, ledger.Attested)
	r.print("  gate --state %s: not reached", next)
	for _, q := range c.Requirements {
		if q.Applies && !q.Met && q.State <= next {
			r.print("    %-10s %d of %d  %s", terminal.Printable(q.Predicate), q.Have, q.Need,
				r.faint(terminal.Printable(q.Reason)))
		}
	}
}

func (r *runner) showStates(ctx context.Context) error {
	r.heading("Final states")
	commits, err := client.Collect(r.writer.Commits(ctx, r.org, r.git.name, client.CommitFilter{}), maxCommits)
	if err != nil {
		return err
	}
	for _, c := range commits {
		r.print("  %s  %s  %-15s %s", terminal.Short(c.SHA), r.paddedState(c.State),
			terminal.Plural(c.Attested, "attestation"),
			r.faint(terminal.Printable(terminal.Clip(terminal.OneLine(c.Message), 50))))
	}
	return nil
}

// showAccess prints how to explore the ledger, in a browser and with curl.
func (r *runner) showAccess() {
	r.heading("Explore it in a browser")
	r.print("  %s", r.url)
	r.print("  sign in with the token %s", r.admin)
	r.heading("Or with the HTTP API")
	r.print("  TOKEN=%s", r.reader)
	base := r.url + "/v1/orgs/" + r.org
	newest := r.git.commits[0]
	for _, path := range []string{
		"/repos",
		"/repos/" + r.git.name + "/commits/" + terminal.Short(newest),
		"/repos/" + r.git.name + "/attestations?predicate=test:*",
		"/policies/" + r.git.name,
		"/events",
	} {
		r.print(`  curl -H "Authorization: Bearer $TOKEN" '%s%s'`, base, path)
	}
}

func (r *runner) print(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

func (r *runner) heading(format string, args ...any) {
	r.print("\n%s", r.Paint("1", fmt.Sprintf(format, args...)))
}

func (r *runner) faint(text string) string { return r.Paint("2", text) }

func (r *runner) state(state ledger.State) string {
	return r.Paint(terminal.StateColour(state), state.String())
}

func (r *runner) paddedState(state ledger.State) string {
	return r.Paint(terminal.StateColour(state), fmt.Sprintf("%-10s", state))
}
