package web

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/server/web/form"
	"github.com/ledgerd/ledgerd/server/web/format"
)

//go:embed templates/*.html
var templates embed.FS

// loadPages parses each page with the layout and the parts.
func (s *Site) loadPages() (map[string]*template.Template, error) {
	shared, err := template.New("layout.html").Funcs(s.functions()).ParseFS(templates, "templates/layout.html",
		"templates/parts*.html")
	if err != nil {
		return nil, fmt.Errorf("parse layout: %w", err)
	}

	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}

	pages := make(map[string]*template.Template)
	for _, file := range files {
		page, err := shared.Clone()
		if err == nil {
			page, err = page.ParseFS(templates, file)
		}
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		pages[strings.TrimSuffix(path.Base(file), ".html")] = page
	}
	return pages, nil
}

// A view is the data of layout.html: a page's own Data, and the frame around it.
type view struct {
	Title   string
	Session *ledger.Token // nil if the page does not show whose session it is
	// CanAdmin reports whether the visitor has the scope admin.
	CanAdmin bool
	// Org and Repo are the page's org and repo; empty for none.
	Org, Repo string
	// OrgTabs, RepoTabs and SettingsTabs are empty if the page does not show them.
	OrgTabs, RepoTabs, SettingsTabs []tab
	Live, LiveCommit, LiveSince     string
	Wide                            bool
	Data                            any
}

// view returns the data of a response's page, with its frame.
func (v *visit) view(resp *response) view {
	session := v.session
	if v.isAnonymous {
		session = nil
	}
	return view{
		Title: resp.title, Session: session, CanAdmin: v.may(ledger.Admin), Org: v.org, Repo: v.repo, Live: resp.live,
		LiveCommit: resp.liveCommit, LiveSince: resp.liveSince, Wide: resp.wide, Data: resp.data,
		OrgTabs: v.orgTabs(), RepoTabs: v.repoTabs(), SettingsTabs: v.settingsTabs(),
	}
}

// render executes the template of a response that is a page.
func (v *visit) render(resp *response) error {
	if resp.page == "" {
		return nil
	}
	var page bytes.Buffer
	if err := v.site.pages[resp.page].Execute(&page, v.view(resp)); err != nil {
		return fmt.Errorf("render page %s: %w", resp.page, err)
	}
	resp.page, resp.body, resp.mediaType = "", page.Bytes(), "text/html; charset=utf-8"
	return nil
}

// write renders and writes a response. If it returns an error, it has written
// nothing.
func (v *visit) write(w http.ResponseWriter, resp *response) error {
	if err := v.render(resp); err != nil {
		return err
	}
	for _, c := range resp.cookies {
		http.SetCookie(w, c)
	}

	switch {
	case resp.stream != nil:
		resp.stream(w, v.r)
		return nil
	case resp.location != "":
		linger := wire.AbandonBody(w, v.r)
		http.Redirect(w, v.r, resp.location, http.StatusSeeOther)
		linger()
		return nil
	}

	h := w.Header()
	if resp.filename != "" {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": resp.filename}))
	}
	if resp.immutable {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	wire.WriteBody(w, v.r, cmp.Or(resp.status, http.StatusOK), resp.mediaType, resp.body)
	return nil
}

// functions returns the functions of the templates.
func (s *Site) functions() template.FuncMap {
	return template.FuncMap{
		"asset":    s.assets.path,
		"path":     pathTo,
		"ends":     s.endsSoon,
		"short":    format.Short,
		"slot":     ledger.ShortSlot,
		"time":     timeTag,
		"due":      func(t ledger.Time) bool { return t <= s.now() },
		"next":     nextTag,
		"duration": format.Duration,
		"plural":   format.Plural,
		"dn":       format.PlainName,
		"line":     format.FirstLine,
		"name":     format.CommitName,
		"clip":     format.Clip,
		"ordered":  format.Ordered,
		"number":   format.Number,
		"maxPairs": func() int { return radar.MaxPairs },
		"lower":    func(v any) string { return strings.ToLower(fmt.Sprint(v)) },
		"label":    format.State,
		"states":   ledger.States,
		"field":    form.NewField,
		"choice":   func(value, label string) form.Choice { return form.Choice{Value: value, Label: label} },
		"choices":  func(c ...form.Choice) []form.Choice { return c },
		"dict":     format.Dict,
	}
}

// timeTag returns a time element in UTC. The script makes it local and relative.
func timeTag(t ledger.Time) template.HTML {
	if t == 0 {
		return "–"
	}
	return template.HTML(`<time datetime="` + t.String() + `" title="` + t.String() + `">` +
		t.Std().Format("2 Jan 2006 15:04") + ` UTC</time>`)
}

// nextTag is timeTag for the time of a next attempt: once it has passed, the
// script shows "now".
func nextTag(t ledger.Time) template.HTML {
	return template.HTML(strings.Replace(string(timeTag(t)), "<time ", "<time data-next ", 1))
}

// serveAsset responds with a static file.
func serveAsset(v *visit) (*response, error) {
	a, ok := v.site.assets.files[v.value("file")]
	if !ok {
		return nil, ledger.Errorf(ledger.CodeNotFound, "file %s not found: reload the page, the server may have "+
			"been upgraded", v.value("file"))
	}
	return &response{body: a.body, mediaType: a.mediaType, immutable: true}, nil
}
