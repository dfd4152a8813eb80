package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/e2e/internal/filecheck"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// send sends one request.
func (l *Load) send(ctx context.Context, c *client.Client) error {
	repo := pick(repos)
	switch n := rand.IntN(200); {
	case n < 2:
		return l.setPolicy(ctx, c, repo)
	case n < 4:
		return l.createWebhook(ctx, c, repo)
	case n < 24:
		l.register(ctx, c, repo)
		return nil
	default:
		return l.attest(ctx, c, repo)
	}
}

func pick[T any](list []T) T { return list[rand.IntN(len(list))] }

// note adds a note of a request that was sent at a time and ended with err.
func (l *Load) note(n filecheck.Note, sent int64, err error) {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		time.Sleep(20 * time.Millisecond) // the server is down, and got nothing
		return
	}
	n.Sent, n.Answered, n.Outcome = sent, l.Book.Now(), filecheck.Confirmed
	if err != nil {
		n.Outcome = filecheck.Unknown
		if e, ok := errors.AsType[*client.Error](err); ok && refused(e) {
			n.Outcome = filecheck.Refused
		}
	}
	l.Book.Add(n)
}

// refused reports whether an error response says that nothing was changed.
func refused(e *client.Error) bool {
	return e.Status != http.StatusInternalServerError &&
		!strings.HasPrefix(e.Problem.Detail, "the commit was registered, but") &&
		!strings.HasPrefix(e.Problem.Detail, "whether this was recorded is unknown")
}

// attest records a new statement, or sends one again that was not recorded.
func (l *Load) attest(ctx context.Context, c *client.Client, repo string) error {
	s, ok := l.takeAgain()
	if !ok {
		var err error
		if s, err = l.newStatement(repo); err != nil {
			return err
		}
	}

	sent, n := l.Book.Now(), s.note
	record, created, err := c.Record(ctx, "acme", s.repo, s.envelope)
	if err == nil {
		n.ID, n.Event, n.Again = record.ID, record.Event, !created
	} else if e, ok := errors.AsType[*client.Error](err); !ok || e.Status >= 500 {
		l.mu.Lock()
		l.again = append(l.again, s)
		l.mu.Unlock()
	}
	l.note(n, sent, err)
	return nil
}

func (l *Load) takeAgain() (s statement, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.again) == 0 {
		return s, false
	}
	s, l.again = l.again[0], l.again[1:]
	return s, true
}

func (l *Load) newStatement(repo string) (s statement, err error) {
	n := l.serial.Add(1)
	result := attestation.ResultPredicate{
		Predicate:   pick([]string{"test:go", "test:go", "review:code", "deploy:prod"}),
		Result:      ledger.Result{Status: pick([]ledger.Status{ledger.Pass, ledger.Pass, ledger.Pass, ledger.Fail})},
		Repo:        "acme/" + repo,
		Annotations: map[string]string{"serial": fmt.Sprint(n)},
	}
	commit := fmt.Sprintf("%040x", max(1, n-rand.Int64N(50))) // some are not registered yet, or never
	payload, err := attestation.NewStatement("git+https://git.example/acme/"+repo, commit, result)
	if err != nil {
		return s, err
	}
	envelope, err := attestation.SignDSSE(pick(l.keys), payload)
	if err != nil {
		return s, err
	}

	digest, content := sha256.Sum256(payload), sha256.Sum256(envelope)
	return statement{repo, envelope, filecheck.Note{
		Kind: filecheck.Attestation, Key: hex.EncodeToString(digest[:]), Content: hex.EncodeToString(content[:]),
		Repo: "acme/" + repo, Commit: commit, Predicate: result.Predicate, Status: string(result.Result.Status),
	}}, nil
}

// register registers a commit as the tip of one of ten branches. Some of them overlap.
func (l *Load) register(ctx context.Context, c *client.Client, repo string) {
	n := l.serial.Add(1)
	branch, message := fmt.Sprintf("feature-%d", rand.IntN(10)), fmt.Sprintf("change %d", n)
	commit := fmt.Sprintf("%040x", n)

	sent := l.Book.Now()
	_, _, err := c.Register(ctx, "acme", repo, commit, ledger.Registration{
		Branch: branch, Message: message, Changes: changes(rand.IntN(20)),
	})
	l.note(filecheck.Note{
		Kind: filecheck.Commit, Key: commit + " " + message, Repo: "acme/" + repo, Commit: commit, Branch: branch,
	}, sent, err)
}

// changes returns the change record of one changed line of a file.
func changes(line int) []radar.Change {
	hash := func(kind string, gap int) string { return fmt.Sprintf("%s%014x", kind, gap) }
	return []radar.Change{{
		Path: "main.go", Status: "M", OldMode: "100644", Mode: "100644",
		OldBlob: fmt.Sprintf("%040x", 1), Blob: fmt.Sprintf("%040x", 2+line),
		Hunks: []radar.Hunk{{
			Start: 1 + line, Lines: 1, Added: 1, Text: hash("e1", line),
			Near: []string{hash("aa", line), hash("aa", line+1)}, Far: []string{hash("bb", line), hash("bb", line+1)},
		}},
	}}
}

// setPolicy replaces the policy of a repo. Requests of two clients at the same time are
// refused.
func (l *Load) setPolicy(ctx context.Context, c *client.Client, repo string) error {
	text := fmt.Appendf(nil, `{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","threshold":%d,"max_age":"720h"},
		{"state":"PROMOTABLE","predicate":"review:*","max_age":"720h"}],
		"radar":{"enabled":true,"block":"HIGH","ignore":["serial-%d"]}}`, 1+rand.IntN(2), l.serial.Add(1))
	contract, err := policy.Parse(text)
	if err != nil {
		return err
	}
	_, etag, err := c.Policy(ctx, "acme", repo)
	if err != nil {
		return nil // the server is down or failing
	}

	sent := l.Book.Now()
	p, err := c.SetPolicy(ctx, "acme", repo, text, etag)
	digest := contract.Digest()
	l.note(filecheck.Note{
		Kind: filecheck.Policy, Key: digest, Repo: "acme/" + repo, Version: p.Version, Content: digest[len("sha256:"):],
	}, sent, err)
	return nil
}

// createWebhook creates a webhook at the load's receiver, if there are not enough of them.
func (l *Load) createWebhook(ctx context.Context, c *client.Client, repo string) error {
	l.mu.Lock()
	enough := l.webhooks >= maxWebhooks
	l.webhooks++
	l.mu.Unlock()
	if enough {
		return nil
	}

	url := fmt.Sprintf("%s/%d", l.receiver.URL, l.serial.Add(1))
	sent := l.Book.Now()
	w, err := c.CreateWebhook(ctx, "acme", repo, outbound.NewWebhook{
		URL: url, Events: pick([][]ledger.EventType{{ledger.EventAttestation, ledger.EventState, ledger.EventPolicy},
			{ledger.EventState, ledger.EventRadar}}),
	})
	if err == nil {
		l.receiver.expect(w)
	}
	l.note(filecheck.Note{Kind: filecheck.Webhook, Key: url, Repo: "acme/" + repo, ID: w.ID}, sent, err)
	return nil
}
