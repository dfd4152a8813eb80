package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/cmd/internal/ci"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// hostile has texts that would act as commands, Markdown or HTML.
var hostile = []string{
	"::error::pwned", "  ::set-output name=x::y", "a\n::add-mask::b", "a\r::stop-commands::x", "##[set-output name=x]y",
	"a ##[add-matcher]/tmp/x", "##vso[task.setvariable variable=x]y", "x ##vso[task.complete result=Succeeded]", "###[x",
	"a | b", "**bold** _x_ `code`", "<img src=x onerror=alert(1)>", "[x](https://evil.example)", "![x](https://e.example)",
	"https://evil.example", "www.evil.example", "# heading", "x\x1b]0;title\a", "&lt;b&gt;", "a\\", "%0A::error::x",
	"a,file=/etc/passwd::x", "];type=error", "~~x~~ <!-- -->", "x\u202egnp",
}

func hostileReport(text string) Report {
	return Report{Heading: text, Notes: []string{text}, Columns: []string{"A", "B"}, Rows: [][]string{{text, text}},
		Annotations: []Annotation{{Level: Warning, Title: text, File: text, Message: text}}}
}

// An annotation is one line with one command, whatever its text.
func TestHostileAnnotations(t *testing.T) {
	for _, text := range hostile {
		for _, p := range []ci.Provider{ci.GitHub, ci.Gitea, ci.Forgejo, ci.Azure, ci.GitLab, ""} {
			var log bytes.Buffer
			o := Output{Provider: p, Log: &log, Getenv: func(string) string { return "" }}
			must.OK(t, o.Write(hostileReport(text)))

			line, found := strings.CutSuffix(log.String(), "\n")
			if !found && line == "" && (p == ci.GitLab || p == "") {
				continue
			}
			if strings.ContainsAny(line, "\r\n\x1b") {
				t.Errorf("%s with %q prints several lines: %q", p, text, line)
			}
			if p == ci.Azure {
				const start = "##vso[task.logissue type=warning;sourcepath="
				properties, _, _ := strings.Cut(strings.TrimPrefix(line, start), "]")
				if !strings.HasPrefix(line, start) || strings.ContainsAny(properties, ";") {
					t.Errorf("%s with %q prints %q", p, text, line)
				}
				continue
			}

			properties, _, _ := strings.Cut(strings.TrimPrefix(line, "::warning "), "::")
			if !strings.HasPrefix(line, "::warning title=") || strings.Count(properties, ",") != 1 ||
				strings.Count(properties, "=") < 2 || strings.Contains(properties, ":") {
				t.Errorf("%s with %q prints %q", p, text, line)
			}
		}
	}
}

// A summary shows hostile text as it is: every special character is escaped, and there are
// no more lines than rows.
func TestHostileSummary(t *testing.T) {
	plain := strings.Count(Markdown(hostileReport("x")), "\n")
	for _, text := range hostile {
		got := Markdown(hostileReport(text))
		if strings.Count(got, "\n") != plain {
			t.Errorf("%q changes the lines of %q", text, got)
		}
		row := strings.Split(got, "\n")[6]
		inert := strings.NewReplacer(`\\`, "").Replace(strings.Trim(row, "| "))
		for i := range len(inert) {
			if strings.ContainsRune("`*_[]<>#!|~&:", rune(inert[i])) && (i == 0 || inert[i-1] != '\\') && inert[i] != '|' {
				t.Errorf("%q is not escaped in %q", inert[i], row)
			}
		}
		if strings.Contains(got, "www.") || strings.Count(got, "://") != strings.Count(got, `\://`) ||
			strings.Count(row, "|")-strings.Count(row, `\|`) != 3 {
			t.Errorf("%q gives the row %q", text, row)
		}
	}
}

// A guard makes the output of ledgerd inert, whatever its boundaries of writes.
func TestGuard(t *testing.T) {
	no := func() Style { return Text }
	for _, text := range append(hostile, "plain\n", ": :\n", "a::b\n", "#v\n", "##x", "\n \t::x", ":\n:") {
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			w := Guard(&out, ci.GitHub, no)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if _, err := io.WriteString(w, rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if got := out.String(); strings.ReplaceAll(got, wordJoiner, "") != text || obeyed(got) ||
				!obeyed(text) && got != text {
				t.Errorf("%q in writes of %d becomes %q", text, size, got)
			}
		}
	}

	var exact bytes.Buffer
	if _, err := io.WriteString(Guard(&exact, ci.GitHub, func() Style { return Exact }), "::x##[y"); err != nil ||
		exact.String() != "::x##[y" {
		t.Errorf("exact text becomes %q: %v", exact.String(), err)
	}
	for _, p := range []ci.Provider{ci.GitLab, ci.Jenkins, ""} {
		if w := Guard(io.Discard, p, no); w != io.Discard {
			t.Errorf("%q has a guard", p)
		}
	}
}

// obeyed reports whether a CI system would obey a command in the text. Like its runner, it
// splits lines at carriage returns too.
func obeyed(text string) bool {
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " \t\v\f"), "::") || strings.Contains(line, "##[") ||
			strings.Contains(line, "##v") {
			return true
		}
	}
	return false
}

// In JSON, the same values are written differently.
func TestGuardOfJSON(t *testing.T) {
	for _, text := range hostile {
		encoded := must.Get(json.Marshal(map[string]string{"x": text}))(t)
		var out bytes.Buffer
		w := Guard(&out, ci.Azure, func() Style { return JSON })
		if _, err := w.Write(encoded); err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["x"] != text || obeyed(out.String()) {
			t.Errorf("%q becomes %s: %v", text, out.String(), err)
		}
	}
}

// Summaries are appended to the file that the CI system or the user names.
func TestSummaryFile(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "summary.md")
	getenv := func(name string) string {
		return map[string]string{"GITHUB_STEP_SUMMARY": file, "AGENT_TEMPDIRECTORY": folder}[name]
	}
	r := Report{Heading: "one"}
	for _, p := range []ci.Provider{ci.GitHub, ci.Gitea, ci.GitLab, ""} {
		must.OK(t, (Output{Provider: p, Log: io.Discard, Getenv: getenv}).Write(r))
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "### one\n\n### one\n\n" {
		t.Errorf("%q, %v", text, err)
	}
	own := filepath.Join(folder, "own.md")
	must.OK(t, (Output{Summary: own, Log: io.Discard, Getenv: getenv}).Write(r))
	if text, err := os.ReadFile(own); err != nil || string(text) != "### one\n\n" {
		t.Errorf("%q, %v", text, err)
	}

	var log bytes.Buffer
	must.OK(t, (Output{Provider: ci.Azure, Log: &log, Getenv: getenv}).Write(r))
	name, found := strings.CutPrefix(strings.TrimSpace(log.String()), "##vso[task.uploadsummary]")
	if text, err := os.ReadFile(name); !found || err != nil || string(text) != "### one\n\n" {
		t.Errorf("%q: %q, %v", log.String(), text, err)
	}
}

// A summary that cannot be written is an error that names it; a full one gets no more.
func TestSummaryFault(t *testing.T) {
	folder := t.TempDir()
	none := func(string) string { return "" }
	if err := (Output{Summary: folder, Log: io.Discard, Getenv: none}).Write(Report{}); err == nil ||
		!strings.HasPrefix(err.Error(), "writing the summary: ") {
		t.Error(err)
	}
	full := filepath.Join(folder, "full.md")
	must.OK(t, os.WriteFile(full, make([]byte, maxSummary), 0o600))
	if err := (Output{Summary: full, Log: io.Discard, Getenv: none}).Write(Report{}); err == nil {
		t.Error("a full summary has grown")
	}
}

// A report has a bounded size.
func TestReportIsBounded(t *testing.T) {
	long := strings.Repeat("é|", 100_000)
	r := Report{Heading: long, Columns: []string{"A"}}
	for range 1000 {
		r.Notes, r.Rows = append(r.Notes, long), append(r.Rows, []string{long})
		r.Annotations = append(r.Annotations, Annotation{Level: Error, Title: long, File: long, Message: long})
	}
	var log bytes.Buffer
	must.OK(t, (Output{Provider: ci.GitHub, Log: &log, Getenv: func(string) string { return "" }}).Write(r))
	if n := strings.Count(log.String(), "\n"); n != maxAnnotations || log.Len() > 100_000 {
		t.Errorf("%d annotations of %d bytes", n, log.Len())
	}
	if text := Markdown(r); len(text) > 200_000 || !strings.Contains(text, "\n950 more\n") {
		t.Errorf("a summary of %d bytes", len(text))
	}
}

func TestGateReport(t *testing.T) {
	commit := ledger.Commit{Standing: ledger.Attested}
	commit.State = ledger.Deployed
	commit.Requirements = []ledger.RequirementStatus{
		{State: ledger.Attested, Predicate: "test:*", Applies: true, Met: true, Have: 1, Need: 1, Reason: "met by cn=ci"},
		{State: ledger.Promotable, Predicate: "review:*", Applies: true, Need: 2, Have: 1, Reason: "1 of 2"},
		{State: ledger.Promotable, Predicate: "scan:*", Need: 1, Reason: "does not apply"},
		{State: ledger.Deployed, Predicate: "deploy:prod", Applies: true, Need: 1, Reason: "0 of 1"},
	}
	reached, missed := Gate("ok", &commit, ledger.Attested, ""), Gate("not ok", &commit, ledger.Promotable, "")
	if len(reached.Annotations) != 0 || len(reached.Rows) != 4 || fmt.Sprint(reached.Rows[2]) !=
		"[- PROMOTABLE scan:* 0 of 1 does not apply]" {
		t.Errorf("%+v", reached)
	}
	if len(missed.Annotations) != 2 || missed.Annotations[0].Message != "not ok" ||
		missed.Annotations[1].Message != "PROMOTABLE: 1 of 2" {
		t.Errorf("%+v", missed.Annotations)
	}
	if unknown := Gate("not found", nil, ledger.Draft, ""); len(unknown.Annotations) != 1 || len(unknown.Rows) != 0 {
		t.Errorf("%+v", unknown)
	}
}

// The gate of an environment is also about what a deployment there ships.
func TestGateReportOfADelivery(t *testing.T) {
	commit := ledger.Commit{Standing: ledger.Promotable, Delivery: &ledger.Delivery{
		Environment: "prod", Base: &ledger.DeliveryBase{}, Uncovered: 1,
		Gaps: []ledger.Gap{{Commit: "5f2a1c9e0b7d", Reasons: []string{"0 of 1"}}},
	}}
	r := Gate("not ok", &commit, ledger.Promotable, "prod")
	if len(r.Annotations) != 2 || r.Annotations[0].Message != "not ok" ||
		r.Annotations[1].Message != "a deployment to prod would ship 1 commit that is not covered" {
		t.Errorf("%+v", r.Annotations)
	}
	if fmt.Sprint(r.Notes) != "[5f2a1c9e0b7d is not covered: 0 of 1]" {
		t.Errorf("%q", r.Notes)
	}
}

func TestRadarReport(t *testing.T) {
	pair := func(level radar.Level) ledger.RadarPair {
		return ledger.RadarPair{Level: level, Commit: ledger.RadarCommit{SHA: "1", Branch: "later"},
			Other: ledger.RadarCommit{SHA: "2", Branch: "first"}, Paths: []radar.Path{{Path: "a.go", Reason: radar.SameLines}}}
	}

	pairs := []ledger.RadarPair{pair(radar.High), pair(radar.Medium), pair(radar.Low)}
	for _, test := range []struct {
		failOn radar.Level
		want   string
	}{
		{radar.NoLevel, "warning notice"}, {radar.High, "error notice"}, {radar.Medium, "error error"},
		{radar.Low, "error error error"},
	} {
		var got []string
		for _, a := range Radar("x", "1", pairs, test.failOn).Annotations {
			got = append(got, string(a.Level))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("with --fail-on %s: %q", test.failOn, got)
		}
	}
	if m := Radar("x", "1", pairs, 0).Annotations[0].Message; !strings.HasPrefix(m, "later overlaps with first") ||
		!strings.HasSuffix(m, "rebase once it has landed") {
		t.Error(m)
	}
	if m := Radar("x", "2", pairs, 0).Annotations[0].Message; !strings.HasPrefix(m, "first overlaps with later") ||
		!strings.HasSuffix(m, "the other branch must rebase") {
		t.Error(m)
	}
}
