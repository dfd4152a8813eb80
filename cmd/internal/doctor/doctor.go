// Package doctor examines what would trouble the start of a server: its settings, files, disks,
// clock and addresses, and the receivers of its webhooks.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

// Examine examines the host for a server with these settings. now is the time of the host. It
// changes nothing: it creates and removes an empty file in each folder that the server writes to.
func Examine(ctx context.Context, s config.Settings, now time.Time) []Finding {
	e := &examination{settings: s, now: now}
	e.configuration()
	var exists bool
	if s.Database.IsServer() {
		exists = e.server(ctx)
	} else {
		exists = e.database(ctx)
		e.disk(exists)
		e.backups()
	}
	if err := s.CheckForServer(); err == nil { // else a finding about the configuration
		e.keys()
	}
	e.files(service.MaxConnections())
	e.certificate()
	e.addresses()

	if exists {
		e.content(ctx)
	}
	return e.findings
}

// configuration examines the environment, and the files that settings name.
func (e *examination) configuration() {
	for _, note := range e.settings.Gone {
		e.add("configuration", Warning, "%s", note)
	}
	err := errors.Join(config.CheckEnvironment(os.Environ()), e.settings.CheckFiles(), e.settings.CheckForServer())
	if err != nil {
		e.add("configuration", Problem, "%v", err)
		return
	}
	e.add("configuration", OK, "is valid")
}

// database examines the file of the database without its content, and reports whether there is
// one that this release can read.
func (e *examination) database(ctx context.Context) (readable bool) {
	const check = "database"
	path := string(e.settings.Database)
	if err := service.CheckDatabase(path); err != nil {
		e.add(check, Problem, "%v", err)
		return false
	}
	if err := tryFolder(filepath.Dir(path)); err != nil {
		e.add(check, Problem, "its folder cannot be written to: %v (run doctor as the user of the server)", err)
		return false
	}

	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		e.add(check, OK, "%s does not exist yet: serve creates it", path)
		return false
	}
	if err == nil {
		err = tryWrite(path)
	}
	if err != nil {
		e.add(check, Problem, "it cannot be written to: %v (run doctor as the user of the server)", err)
		return false
	}

	if name := foreignOwner(info); name != "" {
		e.add(check, Warning, "%s belongs to the user %s: run doctor as the user of the server", path, name)
	}
	if info.Mode().Perm()&0o077 != 0 && enforcesModes {
		e.add(check, Warning, "others may read %s (run chmod 600 %s)", path, path)
	}
	e.lock()
	return e.schema(ctx, info.Size())
}

// lock finds out whether a server runs.
func (e *examination) lock() {
	path := string(e.settings.Database)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if _, err := os.Stat(path + ".lock"); err != nil {
		return // a server has never used the database
	}
	held, err := sqlite.TakeLock(path)
	if err == nil {
		err = held.Release()
	}
	if err != nil {
		e.serving = true
		e.add("database", OK, "a server uses it now")
	}
}

// schema examines whether this release can read the database, and what it does first.
func (e *examination) schema(ctx context.Context, bytes int64) (readable bool) {
	const check = "schema"
	version, current, err := sqlite.SchemaOf(ctx, string(e.settings.Database))
	if err != nil {
		e.add(check, Problem, "%v", err)
		return false
	}
	if current {
		e.add(check, OK, "version %d is that of this release", version)
		return true
	}
	if e.settings.NoCopy {
		e.add(check, Warning, "version %d is of an earlier release: serve migrates it without a copy, as --no-copy says",
			version)
		return false
	}
	e.add(check, Warning, "version %d is of an earlier release: serve keeps a copy (%s), and then migrates it",
		version, size(bytes))
	return false
}

// files examines how many connections a server may have, given how many files the process may open.
func (e *examination) files(connections int) {
	const enough = 1000
	if connections < enough {
		e.add("files", Warning, "the process may open so few files that the server has at most %d connections "+
			"(raise the limit with ulimit -n, or LimitNOFILE= of systemd)", connections)
		return
	}
	e.add("files", OK, "enough for %d connections", connections)
}

// content compares the database with its environment: the clock, the keys of CAs and the webhooks.
func (e *examination) content(ctx context.Context) {
	glance, err := e.glance(ctx)
	if err != nil {
		e.add("database", Problem, "it cannot be read: %v (run 'ledgerd check')", err)
		return
	}
	e.clock(glance.Last.Std())
	e.authorities(glance)
	e.linkers(glance.AnyLinkers)
	e.large(glance.LargeContracts)
	e.unread(glance.Unread)
	e.names(glance.SameNames)
	e.clients(glance.OldClients)
	e.backlog(glance)
	e.secrets(ctx)
	e.providers(ctx)
	e.webhooks(ctx, glance.WebhookURLs)
}

// linkers examines who links artifacts in the repos whose contract is of an earlier release.
func (e *examination) linkers(repos []string) {
	if len(repos) == 0 {
		return
	}
	e.add("policy", Warning, "any_linker: by the rules of an earlier release, every identity without --may can link any "+
		"artifact with any commit in %s (name the builders in artifacts.signers, or give their identities --may "+
		"build:…, and "+
		"apply each policy again)", listed(repos))
}

// large examines which repos have a contract that is larger than a new one may be.
func (e *examination) large(repos []string) {
	if len(repos) == 0 {
		return
	}
	e.add("policy", Warning, "too_large: the policies of %s are of an earlier release, and larger than a new one may be. "+
		"They work, but each attestation takes longer ('ledgerd policy lint ORG/REPO' says what to reduce)", listed(repos))
}

// unread examines which statements no longer state an outcome, since a release that reads them otherwise.
func (e *examination) unread(list []store.UnreadType) {
	for i, u := range list {
		if i == maxListed {
			return
		}
		e.add("statements", Warning, "%d of the type %s in %s no longer count or link artifacts: this release reads them as "+
			"statements about something else, or refuses them ('ledgerd attestation list --status recorded' lists them; sign "+
			"them again if they should count)", u.Attestations, u.Type, u.Org)
	}
}

// names examines who counts twice under one name.
func (e *examination) names(orgs []string) {
	if len(orgs) == 0 {
		return
	}
	e.add("policy", Warning, "same_name: signers with one name count as several people, because they did before an "+
		"upgrade, in %s ('ledgerd policy lint ORG/REPO' lists them; for each signer, say "+
		"'ledgerd identity update ID --distinct=false' if they are one person, and '--distinct' if not)", listed(orgs))
}

// clients examines which versions of ledgerd use the API tokens.
func (e *examination) clients(old []store.TokenClient) {
	if len(old) == 0 {
		return
	}
	var names []string
	for _, c := range old {
		names = append(names, fmt.Sprintf("%s with the token %q of %s", c.Version, c.Token, c.Org))
	}
	e.add("clients", Warning, "ledgerd is older than this one where it runs with these tokens: %s (upgrade it there; "+
		"the changelog says what earlier versions read otherwise)", listed(names))
}

// lateJob is how long a job of the background waits before it is a finding.
const lateJob = time.Hour

// backlog examines what fails in the background, and what has waited for long.
func (e *examination) backlog(g store.Glance) {
	found := 0
	for _, b := range g.Backlog {
		if found == maxListed {
			return
		}
		waited := g.Last.Sub(b.Oldest).Truncate(time.Minute)
		switch {
		case b.Failing > 0:
			e.add("background", Problem, "the task %s fails in %s, and is tried again (%d of its jobs): %s", b.Task, b.Org,
				b.Failing, b.Error)
		case b.Oldest != 0 && waited > lateJob:
			e.add("background", Warning, "the task %s has waited in %s for %s (is a server running?)", b.Task, b.Org, waited)
		default:
			continue
		}
		found++
	}
}

// listed returns the first names of a list as text.
func listed(names []string) string {
	list := strings.Join(names[:min(len(names), maxListed)], ", ")
	if len(names) > maxListed {
		list += " and others"
	}
	return list
}

// glance looks into the database.
func (e *examination) glance(ctx context.Context) (g store.Glance, err error) {
	db, err := store.OpenSource(ctx, string(e.settings.Database))
	if err != nil {
		return g, err
	}
	g, err = store.NewReader(db, store.Options{}).Glance(ctx, buildinfo.Version(), maxListed+1)
	return g, errors.Join(err, db.Close())
}

// secrets examines whether the server has the keys of all signing secrets.
func (e *examination) secrets(ctx context.Context) {
	keys, err := e.settings.Webhooks.LoadSecretKeys()
	if err != nil {
		return // a finding about the configuration
	}
	db, err := store.OpenSource(ctx, string(e.settings.Database))
	if err == nil {
		err = service.CheckSecretKeys(ctx, store.NewReader(db, store.Options{SecretKeys: keys}))
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		e.add("webhooks", Problem, "%v", err)
	}
}

// clock compares the clock of the host with the newest record.
func (e *examination) clock(newest time.Time) {
	const check = "clock"
	behind := newest.Sub(e.now).Round(time.Second)
	times := fmt.Sprintf("it shows %s, and the newest record is of %s: ",
		e.now.UTC().Format(time.RFC3339), newest.UTC().Format(time.RFC3339))
	switch {
	case behind > store.MaxClockOffset:
		e.add(check, Problem, "%snothing is recorded until the clock is put right (if it is right, run "+
			"'ledgerd doctor --accept-clock')", times)
	case behind > time.Second:
		e.add(check, Warning, "%suntil it has caught up, the server's time runs at half speed", times)
	default:
		e.add(check, OK, "it is not behind the newest record")
	}
}
